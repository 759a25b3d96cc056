"""Fixtures for pytest. In a `conftest.py`: `pytest_plugins = ["bot.testing.plugin"]`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bot.sandbox.slack import LocalSlack
from bot.testing.local import Local
from core.embedded import EmbeddedServer
from core.store.connect import fast_client


@pytest.fixture(scope="session")
def askgate_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of one embedded server for the whole session."""
    server = EmbeddedServer(tmp_path_factory.mktemp("askgate-store"))
    asyncio.run(server.start())
    yield server.url
    asyncio.run(server.stop())


@pytest.fixture
def askgate_settings() -> dict[str, str]:
    """More of askgate's settings, by their names in the environment. Override it where you need some."""
    return {}


@pytest_asyncio.fixture
async def askgate(
    askgate_store: str, askgate_settings: dict[str, str], tmp_path: Path
) -> AsyncIterator[Local]:
    """A real askgate on an empty store, and a local Slack with `ana`, `ben` (an admin) and `cho` in #agents."""
    client: Any = fast_client(askgate_store)
    await client.flushall()
    await client.aclose()
    async with Local(tmp_path, redis_url=askgate_store, admins=["ben"], settings=askgate_settings) as found:
        yield found


@pytest_asyncio.fixture
async def local_slack() -> AsyncIterator[LocalSlack]:
    """A local Slack alone, for a Slack app of your own: empty, with one app that has the token `xoxb-test`."""
    async with LocalSlack() as slack:
        yield slack
