-- Remembers where a run's cards are and what they show. KEYS: of a run, then 12 the call's token.
-- cmd: cards (JSON text), mended (all were drawn again), event and fields (audit; event '': none).
if redis.call('EXISTS', RUN) == 0 then
  return 0
end
redis.call('HSET', RUN, 'cards', cmd.cards)
if cmd.mended then
  redis.call('HDEL', RUN, 'mend')
end
if cmd.event ~= '' and not heard_before() then
  audit(cmd.event, nil, cmd.fields)
end
return 1
