-- Freezes what a host gets, before the first send, and marks the run as being handed over.
-- cmd: token, body (JSON text), key, fields (audit). Returns {body, key, 1 if this froze them}: those of the first time; or
-- nothing if the run is gone or the lease is somebody else's (or over) meanwhile.
if redis.call('EXISTS', RUN) == 0 then
  unschedule(QUEUE, QUEUE_LEASES, cmd.run)
  return {}
end
local record = redis.call('HGET', QUEUE_LEASES, cmd.run)
if not record or cjson.decode(record).token ~= cmd.token then
  return {}
end
local first = redis.call('HSETNX', RUN, 'body', cmd.body)
redis.call('HSETNX', RUN, 'key', cmd.key)
if redis.call('HGET', RUN, 'status') == 'settled' then
  redis.call('HSET', RUN, 'status', 'resuming')
  redis.call('HINCRBY', RUN, 'rev', 1)
end
if redis.call('HGET', RUN, 'claimed_by') ~= cmd.token then
  redis.call('HSET', RUN, 'claimed_by', cmd.token)
  audit('run.claimed', nil, cmd.fields)
end
local frozen = redis.call('HMGET', RUN, 'body', 'key')
return {frozen[1], frozen[2], first}
