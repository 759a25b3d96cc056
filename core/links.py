"""Links: a person is asked to do something elsewhere (sign in, pay, look) and says that it is done."""

from __future__ import annotations

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from core.forms import Control, Text, check_controls

Url = Annotated[str, StringConstraints(min_length=1, max_length=2048)]


class LinkRequest(BaseModel):
    """A link as its caller gives it.

    Where it leads is the ``origin`` alone, which is what a person can judge, unless the host gives the ``url`` too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    title: Text = ""
    body: Text = ""
    origin: Url | None = None
    url: Url | None = None
    controls: tuple[Control, ...] = Field(("accept", "decline"), min_length=1)

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        check_controls(self.controls)
        if self.origin is None and self.url is None:
            raise ValueError('a link wants "origin" or "url"')
        for address in (self.origin, self.url):
            if address is not None:
                _origin(address)
        if self.origin is not None and not _is_bare(self.origin):
            raise ValueError('an origin is "https://host[:port]": no path, query, fragment, user or password')
        if self.origin is not None and self.url is not None and self.shown_origin != _origin(self.url):
            raise ValueError("the url has another origin")
        return self

    @property
    def shown_origin(self) -> str:
        """`https://host[:port]`, as it is shown."""
        return _origin(self.origin or self.url or "")


def _origin(text: str) -> str:
    url = urlsplit(text)
    if (
        url.scheme not in ("http", "https")
        or not url.hostname
        or any(c.isspace() or not c.isprintable() or c in "<>|" for c in text)
    ):
        raise ValueError("wanted an http or https address with a host")
    if url.username is not None or url.password is not None:
        raise ValueError("a user or a password does not belong into an address")
    host = url.hostname.encode("idna").decode() if not url.hostname.isascii() else url.hostname
    shown = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{shown}" + (f":{url.port}" if url.port else "")


def _is_bare(text: str) -> bool:
    url = urlsplit(text)
    return url.path in ("", "/") and not url.query and not url.fragment and not text.endswith(("?", "#"))
