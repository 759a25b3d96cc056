"""What a looprig server is hardly made to say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.hosts.base import HostAway
from core.hosts.looprig.client import LooprigClient
from core.hosts.looprig.factory_client import FactoryClient
from core.hosts.looprig.serve_client import ServeClient
from tests.odd import Odd, said


@pytest.fixture
async def odd() -> AsyncIterator[Odd]:
    async with Odd({}).serving() as odd:
        yield odd


async def test_a_page_of_factory_s_journal_without_events_is_not_its_end(odd: Odd) -> None:
    journal = "/v1/sessions/s/journal"
    events = [{"event_id": "e", "journal_seq": 9, "body": {"type": "GateResolved"}}]
    odd.answers[f"{journal}?from_seq=4&limit=200"] = {"events": [], "next_cursor": "c1"}
    odd.answers[f"{journal}?cursor=c1&limit=200"] = {"events": events}
    client = FactoryClient(odd.url)
    assert [item async for item in client.journal("s", 4)] == [(9, {"type": "GateResolved"})]
    await client.close()


@pytest.mark.parametrize("dialect", [ServeClient, FactoryClient])
async def test_only_a_word_of_a_server_s_error_is_shown(odd: Odd, dialect: type[LooprigClient]) -> None:
    async def why(error: Any) -> str:
        odd.usual = said(502, {"error": error})
        with pytest.raises(HostAway) as raised:
            await client.sessions()
        return str(raised.value)

    client = dialect(odd.url)
    assert await why({"code": "runtime_unavailable"}) == "it answered 502 runtime_unavailable"
    assert await why({"code": "http://ana:hush@db.internal is away"}) == "it answered 502"
    assert await why("no object") == "it answered 502"
    await client.close()
