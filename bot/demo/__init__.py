"""`askgate demo`: everything on this machine. A store, a local Slack to click in, the bot, and a scripted agent."""
