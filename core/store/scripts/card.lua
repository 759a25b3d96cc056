-- Remembers where a run's cards are and what they show. KEYS: of a run, then 12 the call's token.
-- cmd: cards and copies (JSON texts), had (how many cards the caller found), seen (how many principals its copies were
-- looked up for), index (the names of the indexes from here on)?, made (ms)?, mended (all were drawn again), resent (all
-- were taken back, to be sent again), event and fields (audit; event '': none). Returns kept | missing | overtaken:
-- somebody else has remembered one meanwhile, and nothing is changed.
if redis.call('EXISTS', RUN) == 0 then
  return 'missing'
end
local heard = heard_before()
local had = redis.call('HMGET', RUN, 'cards', 'copies')
local seen = cjson.decode(had[2] or '{"seen":[]}').seen
if not heard and (#cjson.decode(had[1] or '[]') ~= cmd.had or #seen ~= cmd.seen) then
  redis.call('DEL', KEYS[12])
  return 'overtaken'
end
redis.call('HSET', RUN, 'cards', cmd.cards)
if cmd.copies then
  redis.call('HSET', RUN, 'copies', cmd.copies)
end
if cmd.index and tonumber(redis.call('HGET', RUN, 'open')) > 0 then
  stand_in(cmd.index)
end
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
