-- Remembers names for a while, the latest so many of them, and tells all that are remembered, the latest first.
-- KEYS: 1 the names. ARGV: now, for how long (ms), how many, then the names that were met at this moment.
local now, kept, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
for number = 4, #ARGV do
  redis.call('ZADD', KEYS[1], now, ARGV[number])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - kept)
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -(most + 1))
redis.call('PEXPIRE', KEYS[1], kept)
return redis.call('ZREVRANGE', KEYS[1], 0, -1)
