-- What a script about each of these runs has to be given. KEYS: runs of one partition.
-- Returns for each the host and the names of the indexes that it stands in; the host is '' if there is no such run.
local found = {}
for _, run in ipairs(KEYS) do
  local fields = redis.call('HMGET', run, 'host', 'index')
  table.insert(found, fields[1] or '')
  table.insert(found, fields[2] or '')
end
return found
