-- Freezes what a callback is sent in this attempt, before the first send, and when that was. cmd: attempt, message
-- (JSON text).
-- Returns {callback, message, since (ms)}: message and ms are those of the first time; or nothing if the run is gone.
local attempt = redis.call('HGET', RUN, 'attempt') or '1'
if cmd.attempt ~= tonumber(attempt) then
  return {}
end
redis.call('HSETNX', RUN, 'message:' .. attempt, cmd.message)
redis.call('HSETNX', RUN, 'pushed_since', now)
return redis.call('HMGET', RUN, 'callback', 'message:' .. attempt, 'pushed_since')
