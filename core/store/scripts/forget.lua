-- Deletes a settled run with all that is kept of it. What happened to it stays in the audit.
-- KEYS: of a run, then 12 state, 13 the dead letters. cmd: before (ms: only if it was settled before), work (what the
-- agenda may have to do), fields (audit, for a run that nobody took up). Returns 1 if it deleted the run, else 0.
local settled = redis.call('ZSCORE', SETTLED, cmd.run)
if not settled or tonumber(settled) >= cmd.before then
  return 0
end
local lease = redis.call('HGET', QUEUE_LEASES, cmd.run)
lease = lease and cjson.decode(lease)['until']
if lease and lease > now then
  -- a host has it in hand and may be about to say so: its time comes with the end of the lease
  redis.call('ZADD', SETTLED, lease - (now - cmd.before), cmd.run)
  return 0
end
if redis.call('ZSCORE', QUEUE, cmd.run) then
  audit('run.lost', nil, cmd.fields)
  unschedule(QUEUE, QUEUE_LEASES, cmd.run)
end
redis.call('ZREM', RUNS, cmd.run)
redis.call('ZREM', EXPIRIES, cmd.run)
for _, what in ipairs(cmd.work) do
  unschedule(AGENDA, LEASES, what .. ':' .. cmd.run)
end
redis.call('ZREM', SETTLED, cmd.run)
redis.call('ZREM', KEYS[13], cmd.run)
redis.call('ZREM', UNDELIVERABLE, cmd.run)
redis.call('DEL', RUN, TRAIL, KEYS[12])
return 1
