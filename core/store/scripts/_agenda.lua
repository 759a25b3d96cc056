-- Shared by the scripts that put something on an agenda. ARGV[1] is a JSON object: now (ms), and what the script needs.

local cmd = cjson.decode(ARGV[1])
local now = cmd.now

-- Makes a member of the agenda (or of a queue) due. Somebody who is working on it finishes first and then does it again.
local function schedule(queue, leases, member, due)
  local record = redis.call('HGET', leases, member)
  if record then
    record = cjson.decode(record)
    if record['until'] and record['until'] > now then
      record.again = math.min(record.again or due, due)
      redis.call('HSET', leases, member, cjson.encode(record))
      return
    end
  end
  redis.call('ZADD', queue, due, member)
end

local function unschedule(queue, leases, ...)
  redis.call('ZREM', queue, ...)
  redis.call('HDEL', leases, ...)
end
