-- Changes who may decide pending gates, or until when. All of it or nothing. KEYS: of a run, then 12 the call's token.
-- cmd: event, by (JSON text), via, items: [{index, rev, policy (JSON text)?, deadline (ms)?, fields (audit),
-- void (people whose votes no longer count)?, votes (tokens of the votes that this was found out about)}],
-- flag (a field of the run to set to 1)?, placed (from here on the run has a card), index (the names of the indexes from here on), made (ms).
-- Returns {word, index}: amended | missing | expired | taken | stale.
if redis.call('EXISTS', RUN) == 0 then
  return {'missing', -1}
end
if redis.call('EXISTS', KEYS[12]) == 1 then
  return {'amended', -1} -- the reply of the first try was lost
end
expire_overdue()

local function votes_of(index)
  local votes, tokens = cjson.decode(redis.call('HGET', RUN, index .. ':votes') or '[]'), {}
  for _, vote in ipairs(votes) do
    table.insert(tokens, vote.token)
  end
  return votes, table.concat(tokens, ' ')
end

for _, item in ipairs(cmd.items) do
  local gate = redis.call('HMGET', RUN, item.index .. ':status', item.index .. ':rev')
  if not gate[1] then
    return {'missing', item.index}
  elseif gate[1] ~= 'pending' then
    return {gate[1] == 'expired' and 'expired' or 'taken', item.index}
  end
  item.old, item.tokens = votes_of(item.index)
  if gate[2] ~= item.rev or (item.void and item.votes ~= item.tokens) then
    return {'stale', item.index}
  end
end
for _, item in ipairs(cmd.items) do
  if item.policy then
    redis.call('HSET', RUN, item.index .. ':policy', item.policy)
  end
  for _, person in ipairs(item.void or {}) do
    for place = #item.old, 1, -1 do
      if item.old[place].person == person then
        table.remove(item.old, place)
      end
    end
    redis.call('HSET', RUN, item.index .. ':votes', #item.old > 0 and cjson.encode(item.old) or '[]')
  end
  if item.deadline then
    redis.call('HSET', RUN, item.index .. ':deadline', string.format('%.0f', item.deadline))
  end
  redis.call('HINCRBY', RUN, item.index .. ':rev', 1)
  audit(cmd.event, gate_id(item.index), ',"by":' .. cmd.by .. ',"from":"' .. cmd.via .. '"' .. item.fields)
end
stand_in(cmd.index)
if cmd.flag then
  redis.call('HSET', RUN, cmd.flag, '1')
end
if cmd.placed then
  redis.call('HSET', RUN, 'placed', '1')
  facts().placed = true
end
local _, earliest = expire_overdue()
if earliest then
  redis.call('ZADD', EXPIRIES, earliest, cmd.run)
end
changed()
heard_before()
return {'amended', -1}
