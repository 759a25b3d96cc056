-- Writes down that somebody was refused. cmd: gate, fields (audit).
if redis.call('EXISTS', RUN) == 1 then
  audit('gate.refused', cmd.gate, cmd.fields)
end
return 1
