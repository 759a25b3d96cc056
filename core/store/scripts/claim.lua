-- Takes what is due off an agenda or a queue, under a lease. KEYS: 1 queue, 2 leases.
-- ARGV: now, lease (ms), limit, token. Returns a flat list: member, tries, member, tries, …
-- A member keeps its place with the score moved to the end of the lease: whoever dies holding it loses it then.
local now, lease_until = tonumber(ARGV[1]), tonumber(ARGV[1]) + tonumber(ARGV[2])
local taken = {}

-- the reply of the first try may have been lost: what this very call took then is its own
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], lease_until, lease_until)) do
  local record = redis.call('HGET', KEYS[2], member)
  record = record and cjson.decode(record)
  if record and record.token == ARGV[4] then
    table.insert(taken, member)
    table.insert(taken, record.tries)
  end
end
if #taken > 0 then
  return taken
end

for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[3])) do
  local record = redis.call('HGET', KEYS[2], member)
  record = record and cjson.decode(record) or {tries = 0}
  record.tries = record.tries + 1
  record.token = ARGV[4]
  record['until'] = lease_until
  record.again = nil
  redis.call('HSET', KEYS[2], member, cjson.encode(record))
  redis.call('ZADD', KEYS[1], lease_until, member)
  table.insert(taken, member)
  table.insert(taken, record.tries)
end
return taken
