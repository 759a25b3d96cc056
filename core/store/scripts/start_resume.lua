-- Freezes what a host gets, before the first send, and marks the run as being handed over.
-- cmd: token, body (JSON text), key. Returns {body, key}: those of the first time.
redis.call('HSETNX', RUN, 'body', cmd.body)
redis.call('HSETNX', RUN, 'key', cmd.key)
local status = redis.call('HGET', RUN, 'status')
if status == 'settled' then
  redis.call('HSET', RUN, 'status', 'resuming')
  redis.call('HINCRBY', RUN, 'rev', 1)
end
return redis.call('HMGET', RUN, 'body', 'key')
