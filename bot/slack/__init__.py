"""What askgate asks of Slack: posting and updating cards, opening views, looking people up."""
