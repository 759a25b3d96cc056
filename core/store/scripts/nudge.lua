-- Asks whether somebody may be reminded now by a message of its own; nobody else may for a while then. If not, what it is
-- about waits for the next message to that person. KEYS: 1 the person, 2 what waits for the person, 3 agenda, 4 its leases.
-- cmd: what (a run), token (of the message), after (ms: not before), gap (ms to the next message), kept (ms), alone (it may
-- be a message of its own), member (of the agenda), bell (channel), partition. Returns 1 (send it) or 0 (it waits).
local person = redis.call('HMGET', KEYS[1], 'free', 'token')
if person[2] == cmd.token then
  return 1 -- the reply of the first try was lost, or the message could not be sent
end
local free = math.max(tonumber(person[1] or '0'), cmd.after)
if cmd.alone and free <= now and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('HSET', KEYS[1], 'free', string.format('%.0f', now + cmd.gap), 'token', cmd.token)
  redis.call('PEXPIRE', KEYS[1], cmd.kept)
  return 1
end
redis.call('ZADD', KEYS[2], 'NX', now, cmd.what)
schedule(KEYS[3], KEYS[4], cmd.member, math.max(free, now))
if free <= now then
  redis.call('PUBLISH', cmd.bell, 'due ' .. cmd.partition)
end
return 0
