-- Makes a dead letter of a run that its host took up, or was told of by somebody else, and that came to nothing there.
-- KEYS: of a run, then 12 the dead letters. cmd: token (of this call), error, fields (audit).
-- Returns failed (also when this very call was heard before) | missing | other.
local DEAD = KEYS[12]
local run = redis.call('HMGET', RUN, 'status', 'mended_by')
if not run[1] then
  return 'missing'
elseif run[2] == cmd.token then
  return 'failed'
elseif run[1] ~= 'resumed' and run[1] ~= 'lost' then
  return 'other'
end
redis.call('HSET', RUN, 'status', 'failed', 'error', cmd.error, 'mended_by', cmd.token)
redis.call('ZADD', DEAD, now, cmd.run)
audit('run.failed', nil, cmd.fields)
changed()
return 'failed'
