-- Puts off the end of leases that are still held. KEYS: 1 queue, 2 leases.
-- ARGV: the new end (ms), then pairs of member and token. Returns the members that somebody else has by now.
local lease_until, lost = tonumber(ARGV[1]), {}
for i = 2, #ARGV, 2 do
  local member = ARGV[i]
  local record = redis.call('HGET', KEYS[2], member)
  record = record and cjson.decode(record)
  if record and record.token == ARGV[i + 1] then
    record['until'] = lease_until
    redis.call('HSET', KEYS[2], member, cjson.encode(record))
    redis.call('ZADD', KEYS[1], lease_until, member)
  else
    table.insert(lost, member)
  end
end
return lost
