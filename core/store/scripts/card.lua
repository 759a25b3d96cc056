-- Remembers where a run's cards are and what they show. KEYS: of a run, then 12 the call's token.
-- cmd: cards (JSON text), had (how many the caller found), mended (all were drawn again), resent (all were taken back, to be
-- sent again), event and fields (audit; event '': none). Returns kept | missing | overtaken: somebody else has remembered one meanwhile, and nothing is changed.
if redis.call('EXISTS', RUN) == 0 then
  return 'missing'
end
local heard = heard_before()
if not heard and #cjson.decode(redis.call('HGET', RUN, 'cards') or '[]') ~= cmd.had then
  redis.call('DEL', KEYS[12])
  return 'overtaken'
end
redis.call('HSET', RUN, 'cards', cmd.cards)
if cmd.mended then
  redis.call('HDEL', RUN, 'mend')
end
if cmd.resent and not heard then
  redis.call('HDEL', RUN, 'resend')
  redis.call('HINCRBY', RUN, 'resent', 1)
end
if cmd.event ~= '' and not heard then
  audit(cmd.event, nil, cmd.fields)
end
return 'kept'
