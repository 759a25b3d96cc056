"""Where the store is: the text of ASKGATE_REDIS_URL, taken apart and checked.

`scheme://[user[:password]@]host[:port][,host[:port]…][/…][?name=value&…]`. The scheme says how Redis is run: one server
(`redis`, by TLS `rediss`, on a socket `unix`), Sentinel (`redis+sentinel`), Cluster (`redis+cluster`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, unquote

Topology = Literal["one", "sentinel", "cluster"]

SCHEMES: Final[dict[str, tuple[Topology, bool]]] = {
    "redis": ("one", False),
    "rediss": ("one", True),
    "unix": ("one", False),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}
"""What each scheme stands for, and whether by TLS."""

SERVER_PORT: Final = 6379
SENTINEL_PORT: Final = 26379

_FOR_SENTINELS: Final = {"sentinel_username", "sentinel_password"}
_URL = re.compile(
    r"(?P<scheme>[a-z+]*)://"
    r"(?:(?P<user>[^/?#@:]*)(?::(?P<password>[^/?#@]*))?@)?"
    r"(?P<nodes>[\w.,:\[\]%-]*)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?",
    re.ASCII,
)
_NODE = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True)
class Address:
    """Where the store is. ``options`` is what each connection to a server takes, by redis-py's names.

    ``sentinel`` is the same for the connections to the sentinels, which know the server by ``service``.
    """

    topology: Topology
    tls: bool = False
    nodes: tuple[tuple[str, int], ...] = ()
    service: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    sentinel: Mapping[str, Any] = field(default_factory=dict, repr=False)


def parse_address(text: str) -> Address:
    """Raises ValueError with what is wrong, in words that show no secret."""
    scheme = text.partition(":")[0]
    if scheme not in SCHEMES:
        raise ValueError("has another scheme or none")
    topology, tls = SCHEMES[scheme]
    match = _URL.fullmatch(text)
    if match is None or not (text.isascii() or scheme == "unix"):
        raise ValueError("is no URL")
    path, query = unquote(match["path"] or ""), _options(match["query"] or "", tls=tls)
    sentinel = {name.removeprefix("sentinel_"): query.pop(name) for name in _FOR_SENTINELS & query.keys()}
    if sentinel and topology != "sentinel":
        raise ValueError("has options of sentinels without being for one")
    if topology == "sentinel":  # sentinels of servers that speak TLS speak it too, with the same certificates
        sentinel |= {name: value for name, value in query.items() if name.startswith("ssl_")}
    login = {"username": match["user"], "password": match["password"]}
    options = {name: unquote(value) for name, value in login.items() if value} | query
    if scheme == "unix":
        if match["nodes"] or not path.strip("/"):
            raise ValueError("has no absolute path after unix://")
        return Address("one", options={**options, "path": path})
    default_port = SENTINEL_PORT if topology == "sentinel" else SERVER_PORT
    nodes = tuple(_node(node, default_port) for node in match["nodes"].split(",") if node)
    if not nodes:
        raise ValueError("names no server")
    service, db = _path(topology, path)
    if db is not None:
        options.setdefault("db", db)
    _check(topology, nodes, service, options)
    return Address(topology, tls, nodes, service, options, sentinel)


def _node(text: str, default_port: int) -> tuple[str, int]:
    match = _NODE.fullmatch(text)
    if match is None or int(match["port"] or 1) not in range(1, 65_536):
        raise ValueError("has a server that is no host[:port]")
    return unquote(match["v6"] or match["name"]), int(match["port"] or default_port)


def _path(topology: Topology, path: str) -> tuple[str, int | None]:
    """The name of the sentinels' service, and the number of the database."""
    service, _, db = path.strip("/").partition("/") if topology == "sentinel" else ("", "", path.strip("/"))
    if db and not re.fullmatch(r"[0-9]{1,5}", db):
        raise ValueError("has a database that is no number")
    return service, int(db) if db else None


def _check(
    topology: Topology, nodes: tuple[tuple[str, int], ...], service: str, options: Mapping[str, Any]
) -> None:
    if topology == "one" and len(nodes) > 1:
        raise ValueError("names several servers, which is for redis+sentinel:// and redis+cluster://")
    if topology == "sentinel" and not service:
        raise ValueError("names no service: the sentinels' name of the server goes behind a slash")
    if topology == "cluster" and options.get("db"):
        raise ValueError("names a database, of which a cluster has only 0")


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "yes", "1", "false", "no", "0"):
        raise ValueError
    return text.lower() in ("true", "yes", "1")


def _verification(text: str) -> str:
    if text not in ("none", "optional", "required"):
        raise ValueError
    return text


def _file(text: str) -> str:
    path = Path(text).expanduser()
    if not path.is_file():
        raise ValueError
    return str(path)


_OPTIONS: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "db": (int, "a number"),
    "username": (str, "a name"),
    "password": (str, "a text"),
    "client_name": (str, "a name"),
    "sentinel_username": (str, "a name"),
    "sentinel_password": (str, "a text"),
    "ssl_ca_certs": (_file, "the path of a file"),
    "ssl_certfile": (_file, "the path of a file"),
    "ssl_keyfile": (_file, "the path of a file"),
    "ssl_cert_reqs": (_verification, "none, optional or required"),
    "ssl_check_hostname": (_flag, "true or false"),
    "ssl_ciphers": (str, "a list of ciphers"),
}


def _options(query: str, *, tls: bool) -> dict[str, Any]:
    """What stands behind the question mark."""
    options: dict[str, Any] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in _OPTIONS:
            raise ValueError(f"has an option that is none of {', '.join(_OPTIONS)}")
        if name.startswith("ssl_") and not tls:
            raise ValueError(f"has {name}, which is for rediss://")
        read, wanted = _OPTIONS[name]
        try:
            options[name] = read(text)
        except ValueError:
            raise ValueError(f"has {name}, which is not {wanted}") from None
    return options
