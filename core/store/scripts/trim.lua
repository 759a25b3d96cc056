-- Deletes a partition's oldest audit events, and remembers what the oldest one left links to.
-- KEYS: 1 audit, 2 audit head. ARGV: ms (only events from before it), how many at most. Returns how many it deleted.
local rows = redis.call('XRANGE', KEYS[1], '-', '(' .. ARGV[1] .. '-0', 'COUNT', ARGV[2])
if #rows == 0 then
  return 0
end
local last = rows[#rows]
local ms, seq = string.match(last[1], '(%d+)-(%d+)')
redis.call('HSET', KEYS[2], 'link', redis.sha1hex(last[2][2]))
redis.call('XTRIM', KEYS[1], 'MINID', '=', ms .. '-' .. string.format('%.0f', tonumber(seq) + 1))
return #rows
