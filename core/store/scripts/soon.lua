-- Makes a member of an agenda due, unless it is due sooner. KEYS: 1 agenda, 2 its leases. cmd: member, due (ms), bell
-- (channel), partition.
local due = tonumber(redis.call('ZSCORE', KEYS[1], cmd.member) or cmd.due)
schedule(KEYS[1], KEYS[2], cmd.member, redis.call('HEXISTS', KEYS[2], cmd.member) == 1 and cmd.due or math.min(due, cmd.due))
redis.call('PUBLISH', cmd.bell, 'due ' .. cmd.partition)
return 1
