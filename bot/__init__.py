"""askgate in Slack: cards rendered from stored state, clicks turned into decisions."""
