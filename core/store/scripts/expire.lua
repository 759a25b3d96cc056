-- Makes the expiries of a run visible, and puts the next one on the agenda. Returns how many gates it settled.
local count, earliest = expire_overdue()
if earliest then
  schedule(AGENDA, LEASES, 'expire:' .. cmd.run, earliest)
end
return count
