"""The Web API methods, one module a noun. Importing this package fills the register."""

from bot.sandbox.methods import chat, conversations, files, oauth, people, tools, views
from bot.sandbox.methods.register import METHODS, Arguments, Call, Refused

__all__ = [
    "METHODS",
    "Arguments",
    "Call",
    "Refused",
    "chat",
    "conversations",
    "files",
    "oauth",
    "people",
    "tools",
    "views",
]
