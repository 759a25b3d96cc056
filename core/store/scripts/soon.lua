-- Makes a member of an agenda due, unless it is due sooner. KEYS: the agenda, its leases. ARGV: now, member, due (ms), the
-- bell's channel and message. Somebody who is working on it finishes first and then does it again.
local now, member, due = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local record = redis.call('HGET', KEYS[2], member)
record = record and cjson.decode(record)
if record and record['until'] and record['until'] > now then
  record.again = math.min(record.again or due, due)
  redis.call('HSET', KEYS[2], member, cjson.encode(record))
else
  redis.call('ZADD', KEYS[1], 'LT', due, member)
end
redis.call('PUBLISH', ARGV[4], ARGV[5])
return 1
