-- Has a run's card drawn again as it is, because it may not show that in Slack. KEYS: of a run.
if redis.call('HGET', RUN, 'placed') == '1' then
  redis.call('HSET', RUN, 'mend', '1')
  schedule(AGENDA, LEASES, 'card:' .. cmd.run, now)
  bell('due ' .. cmd.partition)
end
return 1
