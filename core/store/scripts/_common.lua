-- Shared by the scripts about runs; put before each of them, behind `_agenda.lua`.
-- KEYS of a script about one run: 1 run, 2 agenda, 3 its leases, 4 audit, 5 audit head, 6 queue, 7 its leases,
-- 8 open runs, 9 all runs, 10 the run's trail, 11 settled runs, from 12 on what the script itself needs, then the
-- undeliverable runs, the homes that people look at and the expiries, then the indexes that the run stands in while it waits.
-- ARGV[1] is a JSON object: now (ms), iso (the same as text), run (id), first_index and last_index (the numbers of the
-- first and the last of those keys), and what the script needs.
-- JSON that Lua need not look into is passed as strings and spliced: cjson would turn [] into {} and 1.0 into 1.

local RUN, AGENDA, LEASES, AUDIT, HEAD = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local QUEUE, QUEUE_LEASES, OPEN, RUNS, TRAIL, SETTLED = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local UNDELIVERABLE, HOMES, EXPIRIES = KEYS[cmd.first_index - 3], KEYS[cmd.first_index - 2], KEYS[cmd.first_index - 1]
local INDEXES = {}
for number = cmd.first_index, cmd.last_index do
  INDEXES[number - cmd.first_index + 1] = KEYS[number]
end

-- What is to ring when the script is through: each once, however many runs it is about. All of it is one message, for
-- whoever hears it pays for each.
local rings, rung = {}, {}
local function bell(message)
  if not rung[message] then
    rung[message] = true
    table.insert(rings, message)
  end
end

-- Appends audit events: each is {event, gate (false: it is about the run), fields}. `fields` is JSON text behind the first
-- fields, each with a comma before it. The link to the event before is SHA-1, the one digest that a script can make.
-- Returns the ids of their entries.
local digest, audit_ms -- of the newest event, once it was looked up
local function append(events)
  if not digest then
    local head = redis.call('HMGET', HEAD, 'digest', 'ms')
    digest, audit_ms = head[1] or '', string.format('%.0f', math.max(now, tonumber(head[2] or '0')))
  end
  local ids = {}
  for number, event in ipairs(events) do
    local line = '{"event":"' .. event[1] .. '","at":"' .. cmd.iso .. '","run":"' .. cmd.run .. '","gate":'
      .. (event[2] and ('"' .. event[2] .. '"') or 'null') .. event[3] .. ',"prev":"' .. digest .. '"}'
    ids[number] = redis.call('XADD', AUDIT, audit_ms .. '-*', 'event', line)
    digest = redis.sha1hex(line)
  end
  return ids
end

-- The same, for readers of the run's own events to find.
local function audit_all(events)
  redis.call('RPUSH', TRAIL, unpack(append(events)))
end

local function audit(event, gate, fields)
  audit_all({{event, gate, fields}})
end

local function gate_id(index)
  return 'gate' .. string.sub(cmd.run, 4) .. '_' .. index
end

-- Whether this very call was heard already: its reply was lost, and the client asks again. KEYS[12] bears its token.
local function heard_before()
  return not redis.call('SET', KEYS[12], '1', 'NX', 'PX', 60000)
end

-- What is asked of the run again and again: how many gates it has and how many of them are pending, whether it has a card,
-- its host, whether it has a callback, drafts, or something that falls due while it waits.
local known = {}
local function facts()
  if not known[RUN] then
    local fields = redis.call('HMGET', RUN, 'n', 'open', 'placed', 'host', 'callback', 'drafted', 'timed')
    known[RUN] = {gates = tonumber(fields[1] or '0'), open = tonumber(fields[2] or '0'), placed = fields[3] == '1',
      host = fields[4], pushed = fields[5], drafted = fields[6], timed = fields[7]}
  end
  return known[RUN]
end

-- Somebody may have the run on a list in front of them: who that is, the worker finds out.
local watched
local function tell_homes()
  if watched == nil then
    watched = redis.call('EXISTS', HOMES) == 1
  end
  if watched then
    schedule(AGENDA, LEASES, 'home:' .. cmd.run, now)
    bell('due ' .. cmd.partition)
  end
end

-- Has the run stand in these indexes too, whose keys the script was given. `names` are theirs, with blanks between. What
-- somebody else has added meanwhile stays.
local function stand_in(names)
  local all = ' ' .. (redis.call('HGET', RUN, 'index') or '') .. ' '
  for name in string.gmatch(names, '%S+') do
    if not string.find(all, ' ' .. name .. ' ', 1, true) then
      all = all .. name .. ' '
    end
  end
  redis.call('HSET', RUN, 'index', string.match(all, '^%s*(.-)%s*$'))
  for _, index in ipairs(INDEXES) do
    redis.call('ZADD', index, cmd.made, cmd.run)
  end
end

-- Something that a reader could see has changed: count it, bring the card up to date, wake who waits. A script about many
-- runs names them all at its end.
local changed_runs = {}
local function changed()
  redis.call('HINCRBY', RUN, 'rev', 1)
  if facts().placed then
    schedule(AGENDA, LEASES, 'card:' .. cmd.run, now)
    bell('due ' .. cmd.partition)
  end
  tell_homes()
  if cmd.others then
    table.insert(changed_runs, cmd.run)
  else
    bell('run ' .. cmd.partition .. ' ' .. cmd.run)
  end
end

-- Picks that were not submitted are nobody's business when the gate is settled.
local function forget_drafts(index)
  local own = index .. ':draft:'
  for _, field in ipairs(redis.call('HKEYS', RUN)) do
    if string.sub(field, 1, #own) == own then
      redis.call('HDEL', RUN, field)
    end
  end
end

-- The one place where a gate goes from pending to settled. `decision` is JSON text.
local function settle(index, outcome, decision, by, via, fields)
  local said = ',"by":' .. by .. ',"from":"' .. via .. '"'
  local events = {{'gate.settled', gate_id(index), said .. ',"outcome":"' .. outcome .. '"' .. fields}}
  if facts().drafted then
    forget_drafts(index)
  end
  if outcome == 'undeliverable' then
    redis.call('ZADD', UNDELIVERABLE, now, cmd.run)
  end
  local left = facts().open - 1
  facts().open = left
  local ended = {index .. ':status', outcome, index .. ':decision', decision, 'open', left}
  if left > 0 then
    redis.call('HSET', RUN, unpack(ended))
    audit_all(events)
    return
  end
  redis.call('HSET', RUN, 'status', 'settled', unpack(ended))
  table.insert(events, {'run.settled', false, said})
  audit_all(events)
  redis.call('ZADD', SETTLED, now, cmd.run)
  redis.call('ZREM', OPEN, cmd.run)
  for _, names in ipairs(INDEXES) do
    redis.call('ZREM', names, cmd.run)
  end
  redis.call('ZREM', EXPIRIES, cmd.run)
  if facts().timed then
    unschedule(AGENDA, LEASES, 'remind:' .. cmd.run, 'escalate:' .. cmd.run)
  end
  schedule(QUEUE, QUEUE_LEASES, cmd.run, now)
  if facts().pushed then
    schedule(AGENDA, LEASES, 'callback:' .. cmd.run, now)
    bell('due ' .. cmd.partition)
  end
  bell('queue ' .. cmd.partition .. ' ' .. facts().host)
end

-- Settles every pending gate whose deadline has passed. The scripts that decide run it first, so a late click is late
-- whether or not a worker is running. Returns how many it settled, and the next deadline.
local function expire_overdue()
  local count, earliest = 0, nil
  for index = 0, facts().gates - 1 do
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
