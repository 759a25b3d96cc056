-- A host says what became of a run it claimed. cmd: token, status (resumed | lost | failed, or settled with retry_at),
-- retry_at (ms)?, error?, event, by (JSON text), fields (audit).
-- Returns ended | lost; a repeated ack of the same lease is ended.
if redis.call('HGET', RUN, 'ended_by') == cmd.token then
  return 'ended'
end
local record = redis.call('HGET', QUEUE_LEASES, cmd.run)
record = record and cjson.decode(record)
if not record or record.token ~= cmd.token then -- late, but nobody else has it: better taken than resumed twice
  return 'lost'
end
if cmd.retry_at then
  redis.call('ZADD', QUEUE, cmd.retry_at, cmd.run)
  redis.call('HSET', QUEUE_LEASES, cmd.run, cjson.encode({tries = record.tries}))
  redis.call('HSET', RUN, 'status', 'settled', 'error', cmd.error or '')
  bell('queue ' .. cmd.partition .. ' ' .. redis.call('HGET', RUN, 'host'))
else
  unschedule(QUEUE, QUEUE_LEASES, cmd.run)
  redis.call('HSET', RUN, 'status', cmd.status, 'ended_by', cmd.token, 'error', cmd.error or '')
  audit(cmd.event, nil, cmd.fields)
end
changed()
return 'ended'
