-- Counts something for a while. KEYS: 1 the tally. ARGV: 1 by how much, 2 how long it is kept from its first count on (ms).
-- Returns how much it is by now.
local count = redis.call('INCRBY', KEYS[1], ARGV[1])
if count == tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return count
