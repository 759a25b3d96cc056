-- Shared by the scripts; put before each of them.
-- KEYS of a script about one run: 1 run, 2 agenda, 3 its leases, 4 audit, 5 audit head, 6 queue, 7 its leases,
-- 8 open runs, 9 all runs, 10 the run's trail, 11 settled runs. ARGV[1] is a JSON object: now (ms), iso (the same as
-- text), run (id), what the script needs, and
-- first_index: from that key on KEYS are the indexes that the run stands in while it waits.
-- JSON that Lua need not look into is passed as strings and spliced: cjson would turn [] into {} and 1.0 into 1.

local cmd = cjson.decode(ARGV[1])
local now = cmd.now

local RUN, AGENDA, LEASES, AUDIT, HEAD = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local QUEUE, QUEUE_LEASES, OPEN, RUNS, TRAIL, SETTLED = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]

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

local function unschedule(queue, leases, member)
  redis.call('ZREM', queue, member)
  redis.call('HDEL', leases, member)
end

local function bell(message)
  redis.call('PUBLISH', cmd.bell, message)
end

-- Appends an audit event. `fields` is JSON text behind the first fields, each with a comma before it.
-- The link to the event before is SHA-1, the one digest that a script can make.
local function audit(event, gate, fields)
  local head = redis.call('HMGET', HEAD, 'digest', 'ms')
  local ms = math.max(now, tonumber(head[2] or '0'))
  local line = '{"event":"' .. event .. '","at":"' .. cmd.iso .. '","run":"' .. cmd.run .. '","gate":'
    .. (gate and ('"' .. gate .. '"') or 'null') .. fields .. ',"prev":"' .. (head[1] or '') .. '"}'
  local id = redis.call('XADD', AUDIT, string.format('%.0f-*', ms), 'event', line)
  redis.call('HSET', HEAD, 'digest', redis.sha1hex(line), 'ms', string.format('%.0f', ms))
  redis.call('RPUSH', TRAIL, id)
end

local function gate_id(index)
  return 'gate' .. string.sub(cmd.run, 4) .. '_' .. index
end

-- Whether this very call was heard already: its reply was lost, and the client asks again. KEYS[12] bears its token.
local function heard_before()
  return not redis.call('SET', KEYS[12], '1', 'NX', 'PX', 60000)
end

-- Something that a reader could see has changed: count it, bring the card up to date, wake who waits.
local function changed()
  redis.call('HINCRBY', RUN, 'rev', 1)
  if redis.call('HGET', RUN, 'placed') == '1' then
    schedule(AGENDA, LEASES, 'card:' .. cmd.run, now)
    bell('due ' .. cmd.partition)
  end
  bell('run ' .. cmd.partition .. ' ' .. cmd.run)
end

-- The one place where a gate goes from pending to settled. `decision` is JSON text.
local function settle(index, outcome, decision, by, via, fields)
  local gate = gate_id(index)
  redis.call('HSET', RUN, index .. ':status', outcome, index .. ':decision', decision)
  audit('gate.settled', gate, ',"by":' .. by .. ',"from":"' .. via .. '","outcome":"' .. outcome .. '"' .. fields)
  if redis.call('HINCRBY', RUN, 'open', -1) == 0 then
    redis.call('HSET', RUN, 'status', 'settled')
    redis.call('ZADD', SETTLED, now, cmd.run)
    redis.call('ZREM', OPEN, cmd.run)
    for number = cmd.first_index, #KEYS do
      redis.call('ZREM', KEYS[number], cmd.run)
    end
    for _, what in ipairs({'expire:', 'remind:', 'escalate:'}) do
      unschedule(AGENDA, LEASES, what .. cmd.run)
    end
    schedule(QUEUE, QUEUE_LEASES, cmd.run, now)
    if redis.call('HEXISTS', RUN, 'callback') == 1 then
      schedule(AGENDA, LEASES, 'callback:' .. cmd.run, now)
      bell('due ' .. cmd.partition)
    end
    audit('run.settled', nil, ',"by":' .. by .. ',"from":"' .. via .. '"')
    bell('queue ' .. cmd.partition .. ' ' .. redis.call('HGET', RUN, 'host'))
  end
end

-- Settles every pending gate whose deadline has passed. The scripts that decide run it first, so a late click is late
-- whether or not a worker is running. Returns how many it settled, and the next deadline.
local function expire_overdue()
  local count, earliest = 0, nil
  for index = 0, tonumber(redis.call('HGET', RUN, 'n') or '0') - 1 do
    local gate = redis.call('HMGET', RUN, index .. ':status', index .. ':deadline')
    if gate[1] == 'pending' then
      local deadline = tonumber(gate[2])
      if deadline <= now then
        local at = string.format('%.0f', deadline)
        settle(index, 'expired', '{"outcome":"expired","at":' .. at .. ',"via":"clock"}', 'null', 'clock', '')
        count = count + 1
      elseif not earliest or deadline < earliest then
        earliest = deadline
      end
    end
  end
  if count > 0 then
    changed()
  end
  return count, earliest
end
