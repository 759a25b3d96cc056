-- Takes one settled run off its queue under a lease, for whoever pushes it to its callback: nobody else has it meanwhile.
-- It counts as no try. cmd: token, lease_until (ms).
-- Returns {word, number}: taken, tries | held (by somebody else), until when (ms) | over (nothing to push), 0.
local status = redis.call('HGET', RUN, 'status')
if (status ~= 'settled' and status ~= 'resuming') or redis.call('HEXISTS', RUN, 'callback') == 0 then
  return {'over', 0}
end
local record = redis.call('HGET', QUEUE_LEASES, cmd.run)
record = record and cjson.decode(record) or {tries = 0}
if record.token ~= cmd.token and record['until'] and record['until'] > now then
  return {'held', record['until']}
end
redis.call('HSET', QUEUE_LEASES, cmd.run,
  cjson.encode({tries = record.tries, token = cmd.token, ['until'] = cmd.lease_until}))
redis.call('ZADD', QUEUE, cmd.lease_until, cmd.run)
return {'taken', record.tries}
