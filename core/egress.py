"""Where a callback may go: to public addresses over https, and wherever ASKGATE_CALLBACK_ALLOW says.

A caller of the API names the URL, and askgate stands inside a network that the caller may not reach. So no name and no
address may lead there that whoever runs askgate has not named.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from yarl import URL

Address = IPv4Address | IPv6Address
Allowed = IPv4Network | IPv6Network | str

# RFC 6052: an IPv6 address that a gateway translates to the IPv4 address in its last four bytes
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# RFC 6890: all of it; Pythons before 3.11.10 and 3.12.4 take the most of it for public
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
# what `inet_aton` takes for an address, and so do resolvers: "127.1", "0x7f000001", "2130706433"
_OLD_FORM = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}")

_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")


class AddressRefused(OSError):
    """A callback may not go there. (An OSError, as a resolver and a connector have to raise.)"""


@dataclass(frozen=True, slots=True)
class Reach:
    """What callbacks may reach. ``allowed`` are host names and networks that they may reach although not public."""

    allowed: tuple[Allowed, ...] = ()

    def check_url(self, url: str) -> None:
        """Refuse a URL that could never be called, as far as that can be told without a look-up.

        Raises AddressRefused, or ValueError for what is no URL.
        """
        where = URL(url)
        host = host_of(where)
        if (address := literal(host)) is not None:
            self.check(where.scheme, host, [address])
        elif where.scheme != "https" and not self._names(host) and not self._networks():
            raise AddressRefused(_WANTED)

    def check(self, scheme: str, host: str, addresses: Iterable[Address]) -> list[Address]:
        """The addresses of a host that may be connected to. Raises AddressRefused if that is none.

        Those that are allowed expressly are enough; else each of them has to be public.
        """
        found = list(addresses)
        if self._names(host):
            return found
        named = [a for a in found if any(a.version == n.version and a in n for n in self._networks())]
        if named:
            return named
        for address in found:
            if (why := private_kind(address)) is not None:
                raise AddressRefused(f"{host!r} is or leads to {why} address")
        if scheme != "https":
            raise AddressRefused(_WANTED)
        return found

    def _names(self, host: str) -> bool:
        return host in self.allowed

    def _networks(self) -> list[IPv4Network | IPv6Network]:
        return [item for item in self.allowed if not isinstance(item, str)]


_WANTED = "wanted an https URL"


def host_of(url: URL) -> str:
    """A URL's host in one form. Raises AddressRefused if it has none that could be looked up."""
    host = (url.raw_host or "").lower().rstrip(".")
    if literal(host) is None and not _NAME.fullmatch(host):
        raise AddressRefused("wanted a URL with a host")
    return host


def literal(host: str) -> Address | None:
    """The address that a host is as it stands, without a look-up, in whichever form; None for a name."""
    if host == "localhost" or host.endswith(".localhost"):  # RFC 6761: always loopback
        return IPv4Address("127.0.0.1")
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if _OLD_FORM.fullmatch(host):
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            pass
    return None


def private_kind(address: Address) -> str | None:
    """What is not public about an address ("a loopback"); None if it is public."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return "an IPv4-mapped"
        if address in _NAT64:
            return private_kind(IPv4Address(address.packed[-4:]))
        if address.sixtofour is not None or address.teredo is not None or address.is_site_local:
            return "a reserved"
    elif address in _PROTOCOLS:
        return "a private"
    if address.is_unspecified or address.is_loopback:
        return "a loopback"
    if address.is_link_local:
        return "a link-local"
    if address.is_multicast:
        return "a multicast"
    if address.is_reserved:
        return "a reserved"
    return None if address.is_global else "a private"
