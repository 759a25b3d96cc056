"""askgate's engine: runs, gates, decisions, time and Redis. It does not know Slack."""
