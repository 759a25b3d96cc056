-- Notes that a reminder was given, and puts the next one on the agenda. cmd: given (how many so far), due (ms)?.
if redis.call('EXISTS', RUN) == 1 then
  redis.call('HSET', RUN, 'reminded', cmd.given)
  if cmd.due and tonumber(redis.call('HGET', RUN, 'open')) > 0 then
    schedule(AGENDA, LEASES, 'remind:' .. cmd.run, cmd.due)
  end
end
return 1
