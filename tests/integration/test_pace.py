"""The pace: all processes together keep to a rate, who waits comes in turn, and a hold holds everybody."""

from __future__ import annotations

import random

import pytest
from redis.asyncio import Redis

from core.store.pace import Pace, Rate

SECOND = Rate("room", every_ms=1000, burst=3)
HOUSE = Rate("house", every_ms=400, burst=10)


class Hands:
    """A clock that is moved by hand."""

    ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def pace(redis: Redis, clock: Hands) -> Pace:
    return Pace(redis, clock)


async def test_after_a_burst_callers_come_one_by_one_in_the_order_in_which_they_asked(
    pace: Pace, clock: Hands
) -> None:
    waits = [await pace.turn("post", f"caller {n}", [SECOND]) for n in range(6)]
    assert waits == [0, 0, 0, 1000, 2000, 3000]
    clock.ms += 400
    assert await pace.turn("post", "caller 4", [SECOND]) == 1600  # asking early changes nothing
    clock.ms += 600
    assert await pace.turn("post", "newcomer", [SECOND]) == 3000  # behind those who wait
    assert await pace.turn("post", "caller 3", [SECOND]) == 0
    assert await pace.turn("post", "caller 4", [SECOND]) == 1000


async def test_a_rest_gives_the_burst_back_and_no_more(pace: Pace, clock: Hands) -> None:
    assert [await pace.turn("post", f"a{n}", [SECOND]) for n in range(3)] == [0, 0, 0]
    clock.ms += 3_600_000
    assert [await pace.turn("post", f"b{n}", [SECOND]) for n in range(4)] == [0, 0, 0, 1000]


async def test_the_slowest_of_several_rates_counts(pace: Pace) -> None:
    waits = [await pace.turn("post", f"caller {n}", [HOUSE, Rate(f"room {n}", 1000, 1)]) for n in range(12)]
    assert waits == [0] * 10 + [400, 800]
    assert await pace.turn("post", "again", [HOUSE, Rate("room 0", 1000, 1)]) == 1200


async def test_a_hold_holds_everybody_and_a_shorter_one_does_not_shorten_it(
    redis: Redis, pace: Pace, clock: Hands
) -> None:
    other = Pace(redis, clock)
    assert [await pace.turn("post", f"caller {n}", [SECOND]) for n in range(4)][-1] == 1000
    await pace.hold("post", 30_000)
    await other.hold("post", 5_000)
    assert await other.turn("post", "somebody", [Rate("elsewhere", 1000, 3)]) == 30_000
    assert await other.turn("look", "somebody") == 0
    clock.ms += 1000
    assert await pace.turn("post", "caller 3", [SECOND]) == 29_000  # whose turn it would have been
    clock.ms += 29_000
    assert await pace.turn("post", "caller 3", [SECOND]) == 0


@pytest.mark.parametrize("seed", range(5))
async def test_no_rate_is_passed_whoever_comes_when_and_everybody_gets_a_turn(
    redis: Redis, clock: Hands, seed: int
) -> None:
    rng = random.Random(seed)
    processes = [Pace(redis, clock) for _ in range(3)]
    waiting = {f"caller {n}": clock.ms + rng.randrange(5000) for n in range(40)}
    gone: list[int] = []
    while waiting:
        who, clock.ms = min(waiting.items(), key=lambda item: item[1])
        if wait := await rng.choice(processes).turn("post", who, [SECOND]):
            waiting[who] = clock.ms + wait + rng.choice((0, 0, 1, 30))
        else:
            gone.append(clock.ms)
            del waiting[who]
    late = 30  # ms by which somebody may come after the turn
    for first in range(len(gone)):
        for last in range(first, len(gone)):
            most = SECOND.burst + (gone[last] - gone[first] + late) / SECOND.every_ms + 1
            assert last - first + 1 <= most
    assert gone[-1] <= gone[0] + 5000 + 40 * SECOND.every_ms
