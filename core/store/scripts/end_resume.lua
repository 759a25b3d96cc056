-- A host says what became of a run it claimed. cmd: token, status (resumed | lost | failed, or settled with retry_at),
-- retry_at (ms)?, error?, event, by (JSON text), fields (audit).
-- Returns ended | lost; the same word on the same lease again is ended, and changes nothing.
if redis.call('EXISTS', RUN) == 0 then
  return 'lost'
end
local this = cmd.token .. ' ' .. cmd.status
if redis.call('HGET', RUN, 'ended_by') == this then
  return 'ended'
end
local record = redis.call('HGET', QUEUE_LEASES, cmd.run)
record = record and cjson.decode(record)
-- a lease that ran out still counts while nobody else has the run: better taken than resumed twice
if not record or record.token ~= cmd.token then
  return 'lost'
end
if cmd.retry_at then
  redis.call('ZADD', QUEUE, cmd.retry_at, cmd.run)
  redis.call('HSET', QUEUE_LEASES, cmd.run, cjson.encode({tries = record.tries}))
  redis.call('HSET', RUN, 'status', 'settled', 'ended_by', this, 'error', cmd.error or '')
  audit('run.returned', nil, cmd.fields)
  bell('queue ' .. cmd.partition .. ' ' .. redis.call('HGET', RUN, 'host'))
else
  unschedule(QUEUE, QUEUE_LEASES, cmd.run)
  redis.call('HSET', RUN, 'status', cmd.status, 'ended_by', this, 'error', cmd.error or '')
  audit(cmd.event, nil, cmd.fields)
end
changed()
return 'ended'
