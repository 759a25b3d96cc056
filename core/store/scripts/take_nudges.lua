-- Begins a message about what waits for somebody, unless it is too early. KEYS: as of `nudge`.
-- cmd: token (of the message), after (ms: not before), gap (ms to the next message), kept (ms).
-- Returns {token, ms}: the token of the message that was begun (an earlier one that was not ended), or '' and when it may be.
local person = redis.call('HMGET', KEYS[1], 'free', 'sending')
if person[2] then
  return {person[2], 0}
end
local free = math.max(tonumber(person[1] or '0'), cmd.after)
if free > now then
  return {'', free}
end
redis.call('HSET', KEYS[1], 'free', string.format('%.0f', now + cmd.gap), 'token', cmd.token, 'sending', cmd.token)
redis.call('PEXPIRE', KEYS[1], cmd.kept)
return {cmd.token, 0}
