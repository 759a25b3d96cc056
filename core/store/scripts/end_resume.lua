-- Whoever has a run under a lease says what became of it. KEYS: of a run, then 12 the dead letters.
-- cmd: token, status (resumed | lost | failed, or settled with retry_at (ms): hand it out again), error?, fields (audit),
-- event (audit, of a run that is handed out again, else run.returned)?, last {tries, error, fields}?: a run that was handed out
-- so often is not handed out again, but failed; follow_at (ms: when to look what came of it)?
-- Returns ended | lost; the same word on the same lease again is ended, and changes nothing.
local DEAD = KEYS[12]
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
local status, retry_at, said = cmd.status, cmd.retry_at, cmd
if retry_at and cmd.last and record.tries >= cmd.last.tries then
  status, retry_at, said = 'failed', nil, cmd.last
end
redis.call('HSET', RUN, 'status', status, 'ended_by', this, 'error', said.error or '')
if retry_at then
  redis.call('ZADD', QUEUE, retry_at, cmd.run)
  redis.call('HSET', QUEUE_LEASES, cmd.run, cjson.encode({tries = record.tries}))
  audit(cmd.event or 'run.returned', nil, cmd.fields)
  bell('queue ' .. cmd.partition .. ' ' .. redis.call('HGET', RUN, 'host'))
else
  unschedule(QUEUE, QUEUE_LEASES, cmd.run)
  unschedule(AGENDA, LEASES, 'callback:' .. cmd.run)
  if status == 'resumed' then
    redis.call('HDEL', RUN, 'message:' .. (redis.call('HGET', RUN, 'attempt') or '1'))
  else
    redis.call('ZADD', DEAD, now, cmd.run)
  end
  audit('run.' .. status, nil, said.fields)
  if cmd.follow_at then
    schedule(AGENDA, LEASES, 'follow:' .. cmd.run, cmd.follow_at)
  end
end
changed()
return 'ended'
