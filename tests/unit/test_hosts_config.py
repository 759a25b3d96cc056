"""The file of hosts: what a block may say, and what a slip in it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.hosts.config import HostsError, MotusConfig, load_hosts

MOTUS = """
[motus.prod]
url = "http://127.0.0.1:8000/"
channel = "C1"
approvers = ["U1", "S1"]
turn_timeout_s = 3600
failures.color_picker = { hex = "#000000" }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "hosts.toml"
    path.write_text(text)
    return path


def test_a_block_names_its_host_and_says_where_its_cards_go(tmp_path: Path) -> None:
    [host] = load_hosts(written(tmp_path, MOTUS))
    assert isinstance(host, MotusConfig)
    assert (host.name, host.url, host.turn_timeout_s) == ("motus.prod", "http://127.0.0.1:8000", 3600)
    assert host.failures == {"color_picker": {"hex": "#000000"}}
    assert host.place
    assert host.place.channel == "C1"
    assert host.policy.approvers == ["U1", "S1"]


def test_a_secret_may_stand_in_a_file_of_its_own_and_is_shown_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("top-secret-0123456789\n")
    [host] = load_hosts(written(tmp_path, MOTUS + f'api_key = "@{secret}"\n'))
    assert host.api_key
    assert host.api_key.get_secret_value() == "top-secret-0123456789"
    assert "top-secret" not in repr(host)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[motos.prod]\n", "there are no hosts [motos.…]; wanted a13n, motus, looprig"),
        ("motus = 1\n", "motus: wanted blocks [motus.NAME]"),
        ("[motus]\nurl = 'x'\n", "[motus] url: wanted blocks [motus.NAME]"),
        ("[motus.Prod]\nurl = 'http://a'\n", "[motus.Prod]: wanted a name of 1 to 40 of a-z 0-9 . _ -"),
        ("[motus.a]\n", "[motus.a] url: Field required"),
        ("[motus.a]\nurl = 'ftp://a'\n", "[motus.a] url: wanted an http or https URL without a query"),
        ("[motus.a]\nurl = 'http://u:p@a'\n", "[motus.a] url: a user or a password does not belong"),
        ("[motus.a]\nurl = 'http://a'\nname = 'b'\n", "[motus.a] name: the block is named by its heading"),
        ("[motus.a]\nurl = 'http://a'\nchanel = 'C1'\n", "[motus.a] chanel: Extra inputs"),
        ("[motus.a]\nurl = 'http://a'\napi_key = '@/none'\n", "[motus.a] api_key: its file cannot be read"),
        ("[motus.a\n", "hosts.toml: "),
        (
            "[motus.a]\nurl = 'http://a'\nescalate = { after_s = 60, place = { channel = 'C1', team = 'T2' } }\n",
            "[motus.a] escalate: place.team: an escalation stays in its run's workspace; leave team out",
        ),
        ("[a13n.a]\nurl = 'http://a'\n", "[a13n.a] api_key: Field required"),
        (
            "[a13n.a]\nurl = 'http://a'\napi_key = 'k'\nwebhook_secret = 'short'\n",
            "[a13n.a] webhook_secret: wanted the whole signing_secret",
        ),
        ("[a13n.a]\nurl = 'http://a'\napi_key = 'k'\npoll_s = 0\n", "[a13n.a] poll_s: Input should be"),
    ],
)
def test_a_slip_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(HostsError, match=r"hosts\.toml") as caught:
        load_hosts(written(tmp_path, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
