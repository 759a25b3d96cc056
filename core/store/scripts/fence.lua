-- Has every later event of a partition stand at this ms or behind it. KEYS: 1 audit head. ARGV: ms.
if tonumber(redis.call('HGET', KEYS[1], 'ms') or '0') < tonumber(ARGV[1]) then
  redis.call('HSET', KEYS[1], 'ms', ARGV[1])
end
return 1
