-- Has a run's card sent again, and the messages that show it taken back. KEYS: of a run, then 12 the call's token.
-- cmd: fields (audit). Returns resent | missing | unplaced (it has no card) | settled.
local run = redis.call('HMGET', RUN, 'open', 'placed')
if not run[1] then
  return 'missing'
elseif run[2] ~= '1' then
  return 'unplaced'
elseif tonumber(run[1]) == 0 then
  return 'settled'
elseif not heard_before() then
  redis.call('HSET', RUN, 'resend', '1')
  audit('card.resent', nil, cmd.fields)
  schedule(AGENDA, LEASES, 'card:' .. cmd.run, now)
  bell('due ' .. cmd.partition)
end
return 'resent'
