-- Takes one person's word on one or more gates of a run, all of it or nothing. KEYS: of a run, then 12 what that person has
-- said.
-- cmd: said_most (how many gates are kept there), said_kept (ms, since the newest), by (JSON text), via, items: [{index, rev, action, outcome, need (votes that settle it), speaker, person, token,
-- vote (JSON text), extra (JSON text behind the decision's first fields), fields (audit),
-- edit {args, record (JSON texts), fields (audit)}?}]. An edit makes votes on the old arguments void.
-- Returns {word, index, the run's fields}: settled | voted | again (this very call was heard before), or a refusal: missing | expired |
-- taken | stale.
if redis.call('EXISTS', RUN) == 0 then
  return {'missing', -1}
end
expire_overdue()

local function heard(votes, token)
  for _, vote in ipairs(votes) do
    if vote.token == token then
      return true
    end
  end
  return false
end

for _, item in ipairs(cmd.items) do
  local gate = redis.call('HMGET', RUN, item.index .. ':status', item.index .. ':rev', item.index .. ':votes')
  if not gate[1] then
    return {'missing', item.index}
  end
  item.votes = cjson.decode(gate[3] or '[]')
  if heard(item.votes, item.token) then
    return {'again', item.index, redis.call('HGETALL', RUN)}
  end
  if gate[1] == 'expired' then
    return {'expired', item.index, redis.call('HGETALL', RUN)}
  elseif gate[1] ~= 'pending' then
    return {'taken', item.index, redis.call('HGETALL', RUN)}
  elseif gate[2] ~= item.rev then
    return {'stale', item.index}
  end
end

local word = 'voted'
for _, item in ipairs(cmd.items) do
  local votes, same = {}, {}
  for _, vote in ipairs(item.votes) do
    -- one vote a key, whomever it names, and one a person, whoever brings it: the last word counts
    if vote.speaker ~= item.speaker and vote.person ~= item.person and not item.edit then
      table.insert(votes, vote)
    end
  end
  if item.edit then
    local edits = redis.call('HGET', RUN, item.index .. ':edits')
    edits = edits and (string.sub(edits, 1, -2) .. ',') or '['
    redis.call('HSET', RUN, item.index .. ':args', item.edit.args, item.index .. ':edits', edits .. item.edit.record .. ']')
    redis.call('HINCRBY', RUN, item.index .. ':rev', 1)
    audit('gate.edited', gate_id(item.index), ',"by":' .. cmd.by .. ',"from":"' .. cmd.via .. '"' .. item.edit.fields)
  end
  table.insert(votes, {speaker = item.speaker, person = item.person, token = item.token, action = item.action, vote = item.vote})
  redis.call('HSET', RUN, item.index .. ':votes', cjson.encode(votes))
  for _, vote in ipairs(votes) do
    if vote.action == item.action then
      table.insert(same, vote.vote)
    end
  end
  if #same >= item.need then
    local decision = '{"outcome":"' .. item.outcome .. '","at":' .. string.format('%.0f', now) .. ',"via":"' .. cmd.via
      .. '","votes":[' .. table.concat(same, ',') .. ']' .. item.extra .. '}'
    settle(item.index, item.outcome, decision, cmd.by, cmd.via, ',"action":"' .. item.action .. '"' .. item.fields)
    word = 'settled'
  else
    audit('gate.voted', gate_id(item.index),
      ',"by":' .. cmd.by .. ',"from":"' .. cmd.via .. '","action":"' .. item.action .. '"' .. item.fields)
  end
end
for _, item in ipairs(cmd.items) do
  redis.call('ZADD', KEYS[12], now, gate_id(item.index))
end
redis.call('ZREMRANGEBYRANK', KEYS[12], 0, -cmd.said_most - 1)
redis.call('PEXPIRE', KEYS[12], cmd.said_kept)
changed()
return {word, -1, redis.call('HGETALL', RUN)}
