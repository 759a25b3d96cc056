-- Puts a run and its gates into the store, once for an Idempotency-Key.
-- KEYS: of a run, then 12 state, 13 idempotency. cmd: made (ms), fields (flat list), gates (how many), deadline (the earliest),
-- opened (audit fields of run.opened), gate_opened (for each gate, those of gate.opened), due (ms by the name of what else
-- falls due: remind, escalate), idem {digest, until}?, state?, kept (ms).
if redis.call('EXISTS', RUN) == 1 then
  return {'made', cmd.run} -- the reply of the first try was lost
end
if cmd.idem then
  local made = redis.call('GET', KEYS[13])
  if made then
    made = cjson.decode(made)
    if made['until'] > now then
      return {made.digest == cmd.idem.digest and 'made' or 'reused', made.run}
    end
  end
end
redis.call('HSET', RUN, 'status', 'waiting', 'rev', 1, unpack(cmd.fields))
if cmd.state then
  redis.call('SET', KEYS[12], cmd.state)
end
if cmd.idem then
  cmd.idem.run = cmd.run
  redis.call('SET', KEYS[13], cjson.encode(cmd.idem), 'PX', cmd.kept)
end
redis.call('ZADD', OPEN, cmd.made, cmd.run)
redis.call('ZADD', RUNS, cmd.made, cmd.run)
for _, index in ipairs(INDEXES) do
  redis.call('ZADD', index, cmd.made, cmd.run)
end
local events = {{'run.opened', false, cmd.opened}}
for index = 0, cmd.gates - 1 do
  table.insert(events, {'gate.opened', gate_id(index), cmd.gate_opened[index + 1]})
end
-- they follow one another, so the first is enough to find them: a run that waits has no trail beside it yet
redis.call('HSET', RUN, 'opened', append(events)[1])
redis.call('ZADD', EXPIRIES, cmd.deadline, cmd.run)
if next(cmd.due) then
  redis.call('HSET', RUN, 'timed', 1)
end
for what, ms in pairs(cmd.due) do
  redis.call('ZADD', AGENDA, ms, what .. ':' .. cmd.run)
end
if redis.call('HGET', RUN, 'placed') == '1' then
  redis.call('ZADD', AGENDA, now, 'card:' .. cmd.run)
  bell('due ' .. cmd.partition)
end
tell_homes()
bell('run ' .. cmd.partition .. ' ' .. cmd.run)
return {'opened', cmd.run}
