-- Keeps what a person has picked but not submitted. cmd: index, speaker, draft (JSON text; empty forgets it).
-- Returns kept | missing | expired | taken.
if redis.call('EXISTS', RUN) == 0 then
  return 'missing'
end
expire_overdue()
local status = redis.call('HGET', RUN, cmd.index .. ':status')
if not status then
  return 'missing'
elseif status ~= 'pending' then
  return status == 'expired' and 'expired' or 'taken'
end
local field = cmd.index .. ':draft:' .. cmd.speaker
if cmd.draft == '' then
  redis.call('HDEL', RUN, field)
else
  redis.call('HSET', RUN, field, cmd.draft, 'drafted', 1)
end
changed()
return 'kept'
