-- Gives a caller of the outside world its turn, so that all processes together keep to its rates.
-- KEYS: 1 until when all who want this are held, 2 the turn of this caller, from 3 on the buckets that it draws from.
-- ARGV: now, how long a turn is kept for who does not come (ms), then for each bucket the ms between two turns and how
-- many may come at once. Returns how many ms the caller has to wait (0: it is its turn), who then asks again.
-- A bucket holds the moment when it will be full again. A turn that was given is taken from it, so those who wait come one
-- after another, in the order in which they asked.
local now, kept = tonumber(ARGV[1]), tonumber(ARGV[2])
local held = tonumber(redis.call('GET', KEYS[1]) or '0')
local turn = tonumber(redis.call('GET', KEYS[2]) or '0')
if turn > 0 and turn >= held then
  if turn <= now then
    redis.call('DEL', KEYS[2])
    return 0
  end
  return turn - now
end

local at = math.max(now, held)
for i = 3, #KEYS do
  local every, burst = tonumber(ARGV[i * 2 - 3]), tonumber(ARGV[i * 2 - 2])
  at = math.max(at, tonumber(redis.call('GET', KEYS[i]) or '0') - every * (burst - 1))
end
for i = 3, #KEYS do
  local full = math.max(tonumber(redis.call('GET', KEYS[i]) or '0'), at) + tonumber(ARGV[i * 2 - 3])
  redis.call('SET', KEYS[i], string.format('%.0f', full), 'PX', string.format('%.0f', full - now + kept))
end
if at <= now then
  redis.call('DEL', KEYS[2])
  return 0
end
redis.call('SET', KEYS[2], string.format('%.0f', at), 'PX', string.format('%.0f', at - now + kept))
return at - now
