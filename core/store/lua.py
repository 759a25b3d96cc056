"""The scripts in `scripts/`: read once, called by digest, sent whole when the server does not have them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from redis.exceptions import NoScriptError

_FOLDER = files("core.store") / "scripts"
_COMMON = (_FOLDER / "_common.lua").read_text()


class Script:
    """One script. ``about_run``: it gets the shared part, and its one argument is a JSON object."""

    def __init__(self, name: str, *, about_run: bool = True) -> None:
        source = (_FOLDER / f"{name}.lua").read_text()
        self.name = name
        self.source = f"{_COMMON}\n{source}" if about_run else source
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    async def __call__(self, client: Any, keys: Sequence[str], args: Sequence[str | int]) -> Any:
        try:
            return await client.execute_command("EVALSHA", self.sha, len(keys), *keys, *args)
        except NoScriptError:
            return await client.execute_command("EVAL", self.source, len(keys), *keys, *args)


SUSPEND = Script("suspend")
DECIDE = Script("decide")
AMEND = Script("amend")
REMIND = Script("remind")
WITHDRAW = Script("withdraw")
EXPIRE = Script("expire")
HOSTS = Script("hosts", about_run=False)
DRAFT = Script("draft")
REFUSE = Script("refuse")
CARD = Script("card")
START_RESUME = Script("start_resume")
END_RESUME = Script("end_resume")
CLAIM = Script("claim", about_run=False)
FINISH = Script("finish", about_run=False)
FORGET = Script("forget")
FENCE = Script("fence", about_run=False)
ENDS = Script("ends", about_run=False)
TRIM = Script("trim", about_run=False)
