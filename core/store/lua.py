"""The scripts in `scripts/`: read once, called by digest, sent whole when the server does not have them."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from redis.exceptions import NoScriptError

from core.parsing import Wait
from core.store.replicas import replicated

_FOLDER = files("core.store") / "scripts"
_AGENDA = (_FOLDER / "_agenda.lua").read_text()
_COMMON = (_FOLDER / "_common.lua").read_text()
_FINISH = (_FOLDER / "_finish.lua").read_text()


class Script:
    """One script. ``about_run``: it gets the shared parts before and behind it, and its one argument is a JSON object;
    ``on_agenda``: it gets what puts a member on an agenda alone.

    ``waits``: a person or a host waits for it, so with ASKGATE_REDIS_WAIT it waits for replicas.
    """

    def __init__(
        self, name: str, *, about_run: bool = True, on_agenda: bool = False, waits: bool = False
    ) -> None:
        source = (_FOLDER / f"{name}.lua").read_text()
        self.name = name
        self.waits = waits
        if on_agenda:
            source = "\n".join([_AGENDA, source])
        elif about_run:
            body = ["local function transition()", source, "end"]
            source = "\n".join([_AGENDA, _COMMON, *body, _FINISH])
        self.source = source
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    async def __call__(self, client: Any, keys: Sequence[str], args: Sequence[str | int]) -> Any:
        return await self._sent(client.execute_command, keys, args)

    async def replicated(
        self, client: Any, keys: Sequence[str], args: Sequence[str | int], *, wait: Wait, mark: str
    ) -> Any:
        """The same, with a reply that waits for replicas (see `replicas.py`)."""
        return await self._sent(partial(replicated, client, wait, mark), keys, args)

    async def _sent(
        self, send: Callable[..., Awaitable[Any]], keys: Sequence[str], args: Sequence[str | int]
    ) -> Any:
        try:
            return await send("EVALSHA", self.sha, len(keys), *keys, *args)
        except NoScriptError:
            return await send("EVAL", self.source, len(keys), *keys, *args)


SUSPEND = Script("suspend", waits=True)
DECIDE = Script("decide", waits=True)
AMEND = Script("amend", waits=True)
REMIND = Script("remind")
WITHDRAW = Script("withdraw", waits=True)
EXPIRE = Script("expire")
HOSTS = Script("hosts", about_run=False)
DRAFT = Script("draft", waits=True)
REFUSE = Script("refuse", waits=True)
CARD = Script("card")
RESEND = Script("resend", waits=True)
MEND = Script("mend")
START_RESUME = Script("start_resume", waits=True)
END_RESUME = Script("end_resume", waits=True)
TAKE = Script("take", waits=True)
FREEZE = Script("freeze", waits=True)
RELAPSE = Script("relapse")
REQUEUE = Script("requeue", waits=True)
REOPEN = Script("reopen", waits=True)
CLAIM = Script("claim", about_run=False)
FINISH = Script("finish", about_run=False)
PACE = Script("pace", about_run=False)
HOLD = Script("hold", about_run=False)
TROUBLE = Script("trouble", about_run=False)
RENEW = Script("renew", about_run=False)
FORGET = Script("forget")
FENCE = Script("fence", about_run=False)
ENDS = Script("ends", about_run=False)
TRIM = Script("trim", about_run=False)
SOON = Script("soon", on_agenda=True)
NUDGE = Script("nudge", on_agenda=True)
TAKE_NUDGES = Script("take_nudges", on_agenda=True)
END_NUDGES = Script("end_nudges", on_agenda=True)
TALK = Script("talk", on_agenda=True, waits=True)
TALLY = Script("tally", about_run=False)
MET = Script("met", about_run=False)
