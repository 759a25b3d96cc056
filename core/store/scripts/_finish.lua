-- Behind each script about runs, which is a function by here: runs it, and does what is done once for all that it changed.
local reply = transition()
if digest then
  redis.call('HSET', HEAD, 'digest', digest, 'ms', audit_ms)
end
if #rings > 0 then
  redis.call('PUBLISH', cmd.bell, table.concat(rings, '\n'))
end
return reply
