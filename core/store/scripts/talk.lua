-- Changes a conversation, unless somebody changed it since it was read. KEYS: 1 the conversation, 2 agenda, 3 its leases,
-- 4 the conversations of its channel, 5 (if it has a new session) which conversation that is of.
-- cmd: id, rev (as read), doc (JSON), token (of the call), due (it is to be gone on with), kept (ms), member (of the
-- agenda), bell (channel), partition. Returns 'kept', or 'stale' with nothing changed.
local have = redis.call('HMGET', KEYS[1], 'rev', 'token')
if have[2] == cmd.token then
  return 'kept' -- the reply of the first try was lost
end
if tonumber(have[1] or '0') ~= cmd.rev then
  return 'stale'
end
redis.call('HSET', KEYS[1], 'rev', string.format('%.0f', cmd.rev + 1), 'token', cmd.token, 'doc', cmd.doc)
redis.call('PEXPIRE', KEYS[1], cmd.kept)
redis.call('ZADD', KEYS[4], now, cmd.id)
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now - cmd.kept)
redis.call('PEXPIRE', KEYS[4], cmd.kept)
if KEYS[5] then
  redis.call('SET', KEYS[5], cmd.id, 'PX', cmd.kept)
end
if cmd.due then
  schedule(KEYS[2], KEYS[3], cmd.member, now)
  redis.call('PUBLISH', cmd.bell, 'due ' .. cmd.partition)
end
return 'kept'
