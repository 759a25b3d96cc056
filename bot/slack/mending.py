"""After Slack could not reach this process for a while, cards are drawn again."""

from __future__ import annotations

import contextlib
from typing import Final

import structlog

from core.store.store import Store

MOST: Final = 50
"""How many runs' cards, the newest: what Slack takes in a minute (Slack: rate limits, chat.update). A card that is
older is drawn again when somebody clicks on it."""

log = structlog.get_logger(__name__)


async def mend_cards(store: Store) -> None:
    """Have the newest open cards drawn again: people may have clicked on them in vain, and Slack shows that on them.

    Nothing else is to be made up for. What people clicked meanwhile Slack told them was not taken, and it brings events
    again by itself. Raises StoreUnavailable.
    """
    found: list[str] = []
    async with contextlib.aclosing(store.run_ids(only_open=True, page=MOST)) as ids:
        async for _, run_id in ids:
            found.append(run_id)
            if len(found) == MOST:
                break
    runs = [run for run in await store.read_all(found) if run.cards]
    for run in runs:
        await store.mend(run)
    log.info("cards.mended", count=len(runs))
