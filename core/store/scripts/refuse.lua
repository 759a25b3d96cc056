-- Writes down that somebody was refused. cmd: gate, fields (audit), mend (the card that was clicked is out of date).
if redis.call('EXISTS', RUN) == 1 then
  audit('gate.refused', cmd.gate, cmd.fields)
  if cmd.mend and redis.call('HGET', RUN, 'placed') == '1' then
    redis.call('HSET', RUN, 'mend', '1')
    schedule(AGENDA, LEASES, 'card:' .. cmd.run, now)
    bell('due ' .. cmd.partition)
  end
end
return 1
