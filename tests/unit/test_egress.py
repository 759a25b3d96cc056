"""Where callbacks may go."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from core.egress import AddressRefused, Allowed, Reach, literal, private_kind

FORBIDDEN = {
    "127.0.0.1": "a loopback",
    "127.255.255.254": "a loopback",
    "0.0.0.0": "a loopback",
    "10.1.2.3": "a private",
    "172.16.0.1": "a private",
    "172.31.255.255": "a private",
    "192.168.0.1": "a private",
    "100.64.0.1": "a private",
    "192.0.2.1": "a private",
    "192.0.0.192": "a private",
    "198.18.0.1": "a private",
    "169.254.169.254": "a link-local",
    "224.0.0.1": "a multicast",
    "239.255.255.255": "a multicast",
    "240.0.0.1": "a reserved",
    "255.255.255.255": "a reserved",
    "::1": "a loopback",
    "::": "a loopback",
    "fc00::1": "a private",
    "fd12:3456::1": "a private",
    "2001:db8::1": "a private",
    "fe80::1": "a link-local",
    "fe80::1%eth0": "a link-local",
    "fec0::1": "a reserved",
    "ff02::1": "a multicast",
    "::ffff:10.0.0.1": "an IPv4-mapped",
    "::ffff:93.184.216.34": "an IPv4-mapped",
    "::127.0.0.1": "a reserved",
    "2002:7f00:1::1": "a reserved",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": "a reserved",
    "64:ff9b::7f00:1": "a loopback",
    "64:ff9b::a00:1": "a private",
    "4000::1": "a reserved",
}
PUBLIC = ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "64:ff9b::5db8:d822"]


@pytest.mark.parametrize(("address", "kind"), FORBIDDEN.items())
def test_an_address_that_is_not_public_is_refused(address: str, kind: str) -> None:
    assert private_kind(ip_address(address)) == kind
    with pytest.raises(AddressRefused, match=kind):
        Reach().check("https", "hooks.example.com", [ip_address(address)])


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_reached_over_https_only(address: str) -> None:
    assert private_kind(ip_address(address)) is None
    assert Reach().check("https", "h", [ip_address(address)]) == [ip_address(address)]
    with pytest.raises(AddressRefused, match="https"):
        Reach().check("http", "h", [ip_address(address)])


def test_a_name_with_one_private_address_among_public_ones_is_refused() -> None:
    with pytest.raises(AddressRefused, match="a private"):
        Reach().check("https", "h", [ip_address("93.184.216.34"), ip_address("10.0.0.1")])


def test_of_a_name_with_an_allowed_address_only_that_one_is_reached() -> None:
    found = [ip_address("::1"), ip_address("127.0.0.1"), ip_address("93.184.216.34")]
    assert Reach((ip_network("127.0.0.0/8"),)).check("http", "localhost", found) == [found[1]]


def test_a_host_that_is_allowed_by_name_may_be_anywhere() -> None:
    found = [ip_address("10.0.0.1")]
    assert Reach(("hooks.internal",)).check("http", "hooks.internal", found) == found
    with pytest.raises(AddressRefused):
        Reach(("hooks.internal",)).check("http", "a.hooks.internal", found)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://localhost/",
        "https://LOCALHOST./",
        "https://a.localhost:9/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]:8443/x",
        "https://169.254.169.254/latest",
        "https://user@10.0.0.1/",
        "https://ex ample.com/",
        "https:///path",
        "https://-.a..b/",
        "http://hooks.example.com/",
        "http://93.184.216.34/",
    ],
)
def test_what_could_never_be_called_is_refused_at_once(url: str) -> None:
    with pytest.raises(AddressRefused):
        Reach().check_url(url)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://hooks.example.com/", ()),
        ("https://93.184.216.34/", ()),
        ("http://127.0.0.1:9/", (ip_network("127.0.0.0/8"),)),
        ("http://localhost:9/", (ip_network("127.0.0.0/8"),)),
        ("http://[::1]:9/", (ip_network("::/0"),)),
        ("http://10.0.0.1/", (ip_network("10.0.0.1/32"),)),
        ("http://hooks.internal/", ("hooks.internal",)),
        ("http://HOOKS.internal./", ("hooks.internal",)),
        # where the name leads is told when it is called
        ("http://hooks.internal/", (ip_network("10.0.0.0/8"),)),
    ],
)
def test_what_may_be_called_is_taken(url: str, allowed: tuple[Allowed, ...]) -> None:
    Reach(allowed).check_url(url)


@pytest.mark.parametrize("name", ["example.com", "127.0.0.1.example.com", "1.2.3.4.5", "0x7f.example", "a"])
def test_a_name_is_no_literal_address(name: str) -> None:
    assert literal(name) is None
