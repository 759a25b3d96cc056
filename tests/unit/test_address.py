"""Where the store is: each way of running Redis has a URL, and a slip in one is said without showing a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.address import Address, parse_address

SECRET = "s3cret-s3cret"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://h", Address("one", nodes=(("h", 6379),))),
        ("redis://h:1/2", Address("one", nodes=(("h", 1),), options={"db": 2})),
        ("redis://h/2?db=3", Address("one", nodes=(("h", 6379),), options={"db": 3})),
        ("redis://[::1]:1", Address("one", nodes=(("::1", 1),))),
        (
            "redis://ann:p%40ss@h?client_name=a%20b",
            Address(
                "one",
                nodes=(("h", 6379),),
                options={"username": "ann", "password": "p@ss", "client_name": "a b"},
            ),
        ),
        ("redis://:pw@h", Address("one", nodes=(("h", 6379),), options={"password": "pw"})),
        ("unix:///run/a%20b.sock?db=1", Address("one", options={"db": 1, "path": "/run/a b.sock"})),
        (
            "rediss://h?ssl_cert_reqs=none&ssl_check_hostname=no",
            Address(
                "one",
                tls=True,
                nodes=(("h", 6379),),
                options={"ssl_cert_reqs": "none", "ssl_check_hostname": False},
            ),
        ),
        (
            "redis+sentinel://ann:pw@a,[::1]:2,c:3/main/1?sentinel_username=eve&sentinel_password=spw",
            Address(
                "sentinel",
                nodes=(("a", 26379), ("::1", 2), ("c", 3)),
                service="main",
                options={"username": "ann", "password": "pw", "db": 1},
                sentinel={"username": "eve", "password": "spw"},
            ),
        ),
        (
            "rediss+sentinel://a/main?ssl_cert_reqs=none",
            Address(
                "sentinel",
                tls=True,
                nodes=(("a", 26379),),
                service="main",
                options={"ssl_cert_reqs": "none"},
                sentinel={"ssl_cert_reqs": "none"},
            ),
        ),
        ("redis+cluster://a,b:2", Address("cluster", nodes=(("a", 6379), ("b", 2)))),
        ("redis+cluster://a/0", Address("cluster", nodes=(("a", 6379),), options={"db": 0})),
        ("rediss+cluster://a", Address("cluster", tls=True, nodes=(("a", 6379),))),
    ],
)
def test_every_way_of_running_redis_has_a_url(url: str, address: Address) -> None:
    assert parse_address(url) == address


def test_files_of_certificates_are_found(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("")
    assert parse_address(f"rediss://h?ssl_ca_certs={ca}").options == {"ssl_ca_certs": str(ca)}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "has another scheme or none"),
        ("http://h", "has another scheme or none"),
        (f"redis://:{SECRET}/x@h", "has a server that is no host[:port]"),
        ("redis://:pw\u2100@h", "is no URL"),
        (f"redis://:{SECRET}@h#x", "is no URL"),
        (f"redis://:{SECRET}@", "names no server"),
        ("redis://h:0", "has a server that is no host[:port]"),
        ("redis://h:65536", "has a server that is no host[:port]"),
        ("redis://h:1:2", "has a server that is no host[:port]"),
        ("redis://a,b", "names several servers, which is for redis+sentinel:// and redis+cluster://"),
        ("redis://h/first", "has a database that is no number"),
        ("redis://h?db=first", "has db, which is not a number"),
        (f"redis://h?passwort={SECRET}", "has an option that is none of db, username, password"),
        ("redis://h?ssl_ca_certs=/ca.pem", "has ssl_ca_certs, which is for rediss://"),
        ("rediss://h?ssl_ca_certs=/nowhere.pem", "has ssl_ca_certs, which is not the path of a file"),
        ("rediss://h?ssl_check_hostname=maybe", "has ssl_check_hostname, which is not true or false"),
        ("rediss://h?ssl_cert_reqs=never", "has ssl_cert_reqs, which is not none, optional or required"),
        ("unix://run/a.sock", "has no absolute path after unix://"),
        (f"redis+sentinel://:{SECRET}@a:1", "names no service"),
        ("redis+sentinel://a/main/first", "has a database that is no number"),
        ("redis+cluster://a/1", "names a database, of which a cluster has only 0"),
        (f"redis://h?sentinel_password={SECRET}", "has options of sentinels without being for one"),
    ],
)
def test_a_slip_is_said_and_no_secret_shown(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse_address(url)
    assert str(refused.value).startswith(problem)
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(parse_address(f"redis://:{SECRET}@h"))
