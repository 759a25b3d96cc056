-- Puts a run that failed or was lost back into its host's queue: the same bytes, the same key, its tries from one on.
-- A run whose callback was given up is still in its queue; then only the callback is tried again.
-- KEYS: of a run, then 12 the dead letters. cmd: token (of this call), fields (audit).
-- Returns requeued (also when this very call was heard before) | missing | other.
local DEAD = KEYS[12]
local run = redis.call('HMGET', RUN, 'status', 'mended_by', 'callback')
if not run[1] then
  return 'missing'
elseif run[2] == cmd.token then
  return 'requeued'
end
local callback = 'callback:' .. cmd.run
local dead = run[1] == 'failed' or run[1] == 'lost'
local settled = run[1] == 'settled' or run[1] == 'resuming'
if not dead and not (settled and run[3] and not redis.call('ZSCORE', AGENDA, callback)) then
  return 'other'
end
redis.call('HSET', RUN, 'mended_by', cmd.token)
redis.call('HDEL', RUN, 'pushed_since')
if dead then
  redis.call('HSET', RUN, 'status', 'settled')
  redis.call('ZREM', DEAD, cmd.run)
  redis.call('ZADD', SETTLED, now, cmd.run) -- it is kept as long as one that was settled now
  schedule(QUEUE, QUEUE_LEASES, cmd.run, now)
  bell('queue ' .. cmd.partition .. ' ' .. redis.call('HGET', RUN, 'host'))
end
if run[3] then
  schedule(AGENDA, LEASES, callback, now)
  bell('due ' .. cmd.partition)
end
audit('run.requeued', nil, cmd.fields)
changed()
return 'requeued'
