"""A local Slack: the Web API, deliveries to the app, and people to act as, all on one loopback port."""

from bot.sandbox.acts import Impossible
from bot.sandbox.person import Person, Result
from bot.sandbox.slack import LocalSlack

__all__ = ["Impossible", "LocalSlack", "Person", "Result"]
