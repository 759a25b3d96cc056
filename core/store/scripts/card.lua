-- Remembers where a run's cards are and which revision they show. cmd: cards (JSON text), rev, fields (audit, empty: none).
if redis.call('EXISTS', RUN) == 0 then
  return 0
end
redis.call('HSET', RUN, 'cards', cmd.cards, 'cards_rev', cmd.rev)
if cmd.fields ~= '' then
  audit(cmd.event, nil, cmd.fields)
end
return 1
