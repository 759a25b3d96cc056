"""The audit's chain: whatever is done to it in between is found, at the first event that does not belong there."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.audit import Chain, ChainBroken, Chains, Event, Position, digest


def chain_of(count: int, partition: int = 3, link: str = "") -> list[Event]:
    """Events as the scripts write them."""
    events = []
    for number in range(count):
        fields = {"event": "gate.refused", "gate": None, "reason": f"n {number}", "prev": link}
        line = json.dumps(fields, separators=(",", ":"))
        events.append(Event(Position(1_767_225_600_000 + number // 2, number % 2, partition), line))
        link = digest(line)
    return events


def followed(events: list[Event], link: str | None = "") -> Chain:
    chain = Chain(3, link)
    for event in events:
        chain.follow(event)
    return chain


@pytest.mark.parametrize("text", ["1767225600000-0-7", "0-0-0", "5-12-1023"])
def test_a_position_is_read_as_it_is_written(text: str) -> None:
    assert str(Position.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "x", "1-2", "1-2-3-4", "-1-2-3", "1-2-99999999", f"{10**20}-0-0", "١-٢-٣", "1-2-3\n"]
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="wanted the id of an event"):
        Position.parse(text)


def test_an_event_is_read_as_it_was_exported() -> None:
    for event in chain_of(3):
        assert Event.load(event.exported()) == event


def test_a_whole_chain_holds_from_its_beginning_or_from_what_was_trimmed() -> None:
    events = chain_of(20)
    chain = followed(events)
    chain.end(digest(events[-1].line))
    assert (chain.count, chain.first, chain.last) == (20, events[0].position, events[-1].position)
    later = followed(events[7:], digest(events[6].line))
    later.end(digest(events[-1].line))
    assert followed(events[7:], None).link == later.link


def edited(events: list[Event], at: int) -> list[Event]:
    line = events[at].line.replace('"reason":"n', '"reason":"m')
    return [*events[:at], events[at]._replace(line=line), *events[at + 1 :]]


def removed(events: list[Event], at: int) -> list[Event]:
    return events[:at] + events[at + 1 :]


def inserted(events: list[Event], at: int) -> list[Event]:
    """One more event that links to the one before it as it should."""
    line = events[at].line.replace('"reason":"n', '"reason":"m')
    return [*events[:at], events[at]._replace(line=line), *events[at:]]


def swapped(events: list[Event], at: int) -> list[Event]:
    """Two events changed places, each with the other's id."""
    one, other = events[at], events[at + 1]
    pair = [Event(one.position, other.line), Event(other.position, one.line)]
    return [*events[:at], *pair, *events[at + 2 :]]


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), tampered=st.sampled_from([edited, removed, inserted, swapped]))
def test_an_event_edited_removed_inserted_or_moved_is_found(
    seed: int, tampered: Callable[[list[Event], int], list[Event]]
) -> None:
    events = chain_of(12)
    at = random.Random(seed).randrange(len(events) - 1)
    with pytest.raises(ChainBroken) as broken:
        followed(tampered(events, at)).end(digest(events[-1].line))
    # the break shows at the event itself or at the one behind it
    found = [n for n, event in enumerate(events) if f"event {event.position}:" in str(broken.value)]
    assert found[0] in (at, at + 1)


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_a_cut_end_is_found_by_the_digest_that_is_remembered(cut: int) -> None:
    events = chain_of(12)
    chain = followed(events[:-cut])
    with pytest.raises(ChainBroken, match=f"wanted {digest(events[-1].line)}, as the store remembers it"):
        chain.end(digest(events[-1].line))


def test_a_cut_beginning_is_found() -> None:
    events = chain_of(5)
    with pytest.raises(
        ChainBroken, match=r"wanted empty \(the very first event\), the digest of what was before it"
    ):
        followed(events[1:])


def test_an_event_out_of_order_is_found_although_it_is_linked_well() -> None:
    events = chain_of(4)
    late = events[3]._replace(position=events[1].position)
    with pytest.raises(ChainBroken, match="it stands behind 1767225600001-0-3, which is later"):
        followed([*events[:3], late])


@pytest.mark.parametrize(
    "line",
    [
        '{"event":"x"}',
        '{"event":"x","prev":"y"}',
        '{"event":"x","prev":""} ',
        '{"prev":"","event":"x"}',
        "{}",
    ],
)
def test_a_line_that_was_never_written_so_is_found(line: str) -> None:
    with pytest.raises(ChainBroken, match='does not end in "prev"'):
        followed([Event(Position(1, 0, 3), line)])


# exports


def exported(*chains: list[Event]) -> list[str]:
    """An export of several partitions: all of their events, in the order of their positions."""
    return [f"{event.exported()}\n" for event in sorted(itertools.chain(*chains))]


def test_an_export_of_several_partitions_holds_together() -> None:
    chains = Chains()
    chains.follow(exported(chain_of(9, 0), chain_of(4, 7, link="a" * 40)))
    assert {partition: chain.count for partition, chain in chains.found.items()} == {0: 9, 7: 4}


def test_a_broken_export_says_at_which_line() -> None:
    lines = exported(chain_of(6, 0), chain_of(6, 7))
    with pytest.raises(ChainBroken, match=r"^Line 4\. Partition 0, event 1767225600001-0-0: its prev is"):
        Chains().follow(lines[:2] + lines[3:])


@pytest.mark.parametrize("text", ["", "null", "{}", '{"id": "1-2-3","prev":""}', '{"id":"7","prev":""}'])
def test_a_line_that_is_no_export_is_said(text: str) -> None:
    with pytest.raises(ChainBroken, match=r"^Line 2: wanted"):
        Chains().follow([chain_of(1)[0].exported(), text])
