-- Gives claimed members back. KEYS: 1 queue, 2 leases. ARGV: token, whether it was tried (1 or 0: nobody began it), then
-- pairs of member and the ms to try it again ('' = it is done). What became due meanwhile stays due.
-- Returns how many are due again for that.
local again = 0
for i = 3, #ARGV, 2 do
  local member, retry_at = ARGV[i], ARGV[i + 1]
  local record = redis.call('HGET', KEYS[2], member)
  record = record and cjson.decode(record)
  if record and record.token == ARGV[1] then
    if retry_at ~= '' then
      redis.call('ZADD', KEYS[1], math.max(tonumber(retry_at), record.again or 0), member)
      redis.call('HSET', KEYS[2], member, cjson.encode({tries = record.tries - 1 + tonumber(ARGV[2])}))
    elseif record.again then
      again = again + 1
      redis.call('ZADD', KEYS[1], record.again, member)
      redis.call('HDEL', KEYS[2], member)
    else
      redis.call('ZREM', KEYS[1], member)
      redis.call('HDEL', KEYS[2], member)
    end
  end
end
return again
