"""askgate and a local Slack on this machine, for the tests of an agent. `bot.testing.plugin` has them as fixtures."""

from bot.testing.local import Local

__all__ = ["Local"]
