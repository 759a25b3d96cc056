-- Holds all who want something, until a moment; a longer hold stays. KEYS: 1 the hold. ARGV: now, until when (ms).
local till = tonumber(ARGV[2])
if tonumber(redis.call('GET', KEYS[1]) or '0') < till then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', string.format('%.0f', math.max(till - tonumber(ARGV[1]), 1)))
end
return 1
