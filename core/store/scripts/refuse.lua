-- Writes down that somebody was refused, once a call. KEYS: of a run, then 12 the call's token.
-- cmd: gate (none: it was about the run), fields (audit), mend (the card that was clicked is out of date).
if redis.call('EXISTS', RUN) == 1 and not heard_before() then
  audit(cmd.gate and 'gate.refused' or 'run.refused', cmd.gate, cmd.fields)
  if cmd.mend and redis.call('HGET', RUN, 'placed') == '1' then
    redis.call('HSET', RUN, 'mend', '1')
    schedule(AGENDA, LEASES, 'card:' .. cmd.run, now)
    bell('due ' .. cmd.partition)
  end
end
return 1
