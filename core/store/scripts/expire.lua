-- Makes the expiries of runs of one partition visible, and notes when they have their next ones.
-- KEYS: of a run, and behind them what the others need. cmd.others: {id, and which of the keys behind are its own: the run,
-- its trail, its queue, the queue's leases, and the indexes that it stands in}. Returns how many gates it settled.
local count = 0

local function expire()
  local settled, earliest = expire_overdue()
  if earliest then
    redis.call('ZADD', EXPIRIES, earliest, cmd.run)
  elseif settled == 0 then -- it was settled before, and does not belong here
    redis.call('ZREM', EXPIRIES, cmd.run)
  end
  count = count + settled
end

expire()
for _, other in ipairs(cmd.others) do
  local function own(place)
    return KEYS[cmd.last_index + other[place]]
  end
  cmd.run, RUN, TRAIL, QUEUE, QUEUE_LEASES, INDEXES = other[1], own(2), own(3), own(4), own(5), {}
  for place = 6, #other do
    INDEXES[place - 5] = own(place)
  end
  expire()
end
if #changed_runs > 0 then
  bell('run ' .. cmd.partition .. ' ' .. table.concat(changed_runs, ' '))
end
return count
