-- Has people decide a failed run again: every gate is pending as it was at first, and what comes of it is another attempt
-- with another key. The decisions of before stay in the audit. KEYS: of a run, then 12 the dead letters.
-- cmd: made (ms), token (of this call), by (JSON text), via, gates: [{deadline (ms), fields (audit)}], due (ms by the name
-- of what else falls due: remind, escalate).
-- Returns reopened (also when this very call was heard before) | missing | other.
local DEAD = KEYS[12]
local run = redis.call('HMGET', RUN, 'status', 'mended_by')
if not run[1] then
  return 'missing'
elseif run[2] == cmd.token then
  return 'reopened'
elseif run[1] ~= 'failed' then
  return 'other'
end
local of_before = {draft = true, decision = true, votes = true, args = true, edits = true}
for _, field in ipairs(redis.call('HKEYS', RUN)) do
  if of_before[string.match(field, '^%d+:(%l+)')] or string.match(field, '^message:') then
    redis.call('HDEL', RUN, field)
  end
end
local attempt = tonumber(redis.call('HGET', RUN, 'attempt') or '1') + 1
redis.call('HDEL', RUN, 'body', 'key', 'pushed_since')
redis.call('HSET', RUN, 'status', 'waiting', 'open', #cmd.gates, 'attempt', attempt, 'reopened', now, 'reminded', 0,
  'mended_by', cmd.token)
redis.call('ZREM', DEAD, cmd.run)
redis.call('ZREM', SETTLED, cmd.run)
redis.call('ZREM', UNDELIVERABLE, cmd.run)
redis.call('ZADD', OPEN, cmd.made, cmd.run)
for _, index in ipairs(INDEXES) do
  redis.call('ZADD', index, cmd.made, cmd.run)
end
local said = ',"by":' .. cmd.by .. ',"from":"' .. cmd.via .. '"'
audit('run.reopened', nil, said .. ',"attempt":' .. attempt)
local earliest
for i, gate in ipairs(cmd.gates) do
  local index, id = i - 1, gate_id(i - 1)
  redis.call('HSET', RUN, index .. ':status', 'pending', index .. ':deadline', string.format('%.0f', gate.deadline))
  redis.call('HINCRBY', RUN, index .. ':rev', 1)
  audit('gate.opened', id, said .. gate.fields)
  earliest = math.min(earliest or gate.deadline, gate.deadline)
end
redis.call('ZADD', EXPIRIES, earliest, cmd.run)
for what, ms in pairs(cmd.due) do
  schedule(AGENDA, LEASES, what .. ':' .. cmd.run, ms)
end
changed()
return 'reopened'
