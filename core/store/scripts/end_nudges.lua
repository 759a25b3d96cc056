-- Ends a message about what waited for somebody, or gives up what waits no longer. What came meanwhile waits for the next.
-- KEYS: 1 the person, 2 what waits for the person, 3 agenda, 4 its leases. cmd: what (runs), member (of the agenda).
redis.call('HDEL', KEYS[1], 'sending')
if #cmd.what > 0 then
  redis.call('ZREM', KEYS[2], unpack(cmd.what))
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  schedule(KEYS[3], KEYS[4], cmd.member, math.max(tonumber(redis.call('HGET', KEYS[1], 'free') or '0'), now))
end
return 1
