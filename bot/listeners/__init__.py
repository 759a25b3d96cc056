"""What people do in Slack: clicks, modals, commands, the App Home. Each becomes one call of the engine, then an ack."""
