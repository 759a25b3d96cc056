-- Settles what is pending with an outcome that nobody chose: cancelled, undeliverable, superseded.
-- cmd: outcome, via, decision (JSON text), fields (audit), token (of this call), index (one gate)?.
-- Returns how many gates it settled, or -1 if there is no such run.
if redis.call('EXISTS', RUN) == 0 then
  return -1
end
local last = redis.call('HMGET', RUN, 'withdrawn_by', 'withdrawn')
if last[1] == cmd.token then
  return tonumber(last[2]) -- the reply of the first try was lost
end
expire_overdue()
local count = 0
for index = 0, tonumber(redis.call('HGET', RUN, 'n')) - 1 do
  if (not cmd.index or cmd.index == index) and redis.call('HGET', RUN, index .. ':status') == 'pending' then
    settle(index, cmd.outcome, cmd.decision, 'null', cmd.via, cmd.fields)
    count = count + 1
  end
end
if count > 0 then
  redis.call('HSET', RUN, 'withdrawn_by', cmd.token, 'withdrawn', count)
  changed()
end
return count
