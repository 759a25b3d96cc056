-- Notes a trouble, and has it told. KEYS: 1 the list of troubles, 2 agenda, 3 its leases.
-- ARGV: now, the trouble, how many are kept, the agenda's member that tells them, bell, partition.
-- When some were told only just now, the member is on the agenda for later, and stays there.
local now, member = tonumber(ARGV[1]), ARGV[4]
redis.call('RPUSH', KEYS[1], ARGV[2])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[3]), -1)
local record = redis.call('HGET', KEYS[3], member)
record = record and cjson.decode(record)
if record and record['until'] and record['until'] > now then
  record.again = now -- whoever tells them at this moment may have read the list already
  redis.call('HSET', KEYS[3], member, cjson.encode(record))
else
  redis.call('ZADD', KEYS[2], 'NX', now, member)
end
redis.call('PUBLISH', ARGV[5], 'due ' .. ARGV[6])
return 1
