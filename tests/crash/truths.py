"""What must be true after a play, whatever was killed in it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from bot import words
from bot.sandbox import blocks
from core.gates import Outcome
from core.runs import Run
from tests.crash.host import KEY_NAME
from tests.crash.scenes import Ask, Ends
from tests.crash.stage import PARTITIONS, Play, Stage

Json = dict[str, Any]


async def hold(stage: Stage, play: Play) -> None:
    """Raises AssertionError for the first that is not true."""
    runs: dict[str, set[str]] = defaultdict(set)
    for entry in play.journal.entries("opened"):
        runs[entry["opened"]].add(entry["run"])
    assert set(runs) == {ask.name for ask in play.asks}
    for ask in play.asks:
        [run_id] = runs[ask.name]  # suspended once, however often that was asked for
        run = await stage.store.read(run_id)
        assert run
        events = [json.loads(event.line) async for event in stage.store.audit.of_run(run_id)]
        _settled_once(run, events)
        _ended_as_meant(play, ask, run)
        _counted(play, ask, run, events)
        if ask.pushed:
            _pushed_alike(stage, run)
        else:
            _effected_once(play, ask, run)
        _card_is_true(stage, play, ask, run)
    assert await stage.left(play) == []
    for partition in range(PARTITIONS):
        await stage.store.audit.verify(partition)


def _settled_once(run: Run, events: list[Json]) -> None:
    assert run.status == "resumed", f"{run.doc.external_id} is {run.status}"
    assert not run.open
    told = Counter(event["event"] for event in events)
    assert (told["run.opened"], told["run.settled"], told["run.resumed"]) == (1, 1, 1), told
    for event in ("gate.opened", "gate.settled"):
        assert sorted(e["gate"] for e in events if e["event"] == event) == sorted(g.id for g in run.gates)


def _ended_as_meant(play: Play, ask: Ask, run: Run) -> None:
    results = run.results()
    assert results
    found = {**results["calls"], **results["approvals"]}
    assert set(found) == set(ask.ends)
    for call, end in ask.ends.items():
        result = found[call]
        if end.late and result["outcome"] == Outcome.EXPIRED:
            assert not [act for act in play.acked if act[0] == ask.name], (
                f"{ask.name}: an acknowledged click was lost"
            )
            end = Ends("expired")
        expected = {
            "outcome": end.outcome,
            "by": [_actor(play, ask, person) for person in end.by],
            **end.more,
        }
        if end.value is not None:
            expected["value"] = end.value
        assert {name: result.get(name) for name in expected} == expected, f"{ask.name} {call}: {result}"


def _actor(play: Play, ask: Ask, person: str) -> Json:
    if person == KEY_NAME:
        return {"key": KEY_NAME}
    return {"team": "T0LOCAL", "user": play.id_of(ask, person)}


def _counted(play: Play, ask: Ask, run: Run, events: list[Json]) -> None:
    """Each person who decided is in the audit with that, once a decision."""
    said = [e for e in events if e["event"] in ("gate.voted", "gate.settled") and e["by"]]
    for gate in run.gates:
        for actor in gate.decision.by if gate.decision else ():
            assert any(e["gate"] == gate.id and e["by"] == actor.model_dump() for e in said)


def _effected_once(play: Play, ask: Ask, run: Run) -> None:
    journal = play.journal
    [effect] = [entry for entry in journal.entries("effect") if entry["effect"] == ask.name]
    got = [
        (e["key"], e["results"], e["state"])
        for e in journal.entries("delivered")
        if e["delivered"] == ask.name
    ]
    assert set(got) == {(effect["key"], effect["results"], effect["state"])}, "other bytes at another try"
    assert json.loads(effect["results"]) == run.results()
    if ask.nack:
        assert len(got) > 1


def _pushed_alike(stage: Stage, run: Run) -> None:
    """Who is pushed to sees one thing, however often: the same id, key and bytes."""
    posts = [post for post in stage.receiver.posts if post.message["run"]["id"] == run.id]
    assert len(posts) > 1
    assert len({(post.id, post.raw) for post in posts}) == 1
    assert posts[0].message["run"]["results"] == run.results()


def _card_is_true(stage: Stage, play: Play, ask: Ask, run: Run) -> None:
    """One message in each place that the run has, which says how it ended and offers nothing; and its reminders."""
    ours = [
        m
        for m in stage.slack.world.messages
        if m.metadata and m.metadata["event_payload"].get("run") == run.id
    ]
    shown = [m for m in ours if "part" in (m.metadata or {})["event_payload"]]
    wanted = [] if ask.place in ("archived", "nowhere") else [play.channels[ask.name]]
    wanted += [play.seconds[ask.name]] if ask.place == "two" else []
    assert sorted(m.channel for m in shown) == sorted(wanted), f"{ask.name} has {len(shown)} cards"
    assert len(ours) - len(shown) == ask.reminders, f"{ask.name} has {len(ours) - len(shown)} reminders"
    for message in shown:
        assert not list(blocks.elements(message.blocks)), f"{ask.name}: a settled card offers something"
        [view] = [m for m in stage.slack.messages(message.channel) if m["ts"] == message.ts]
        text = stage.slack.text_of(view)
        for gate in run.gates:
            assert words.SETTLED[Outcome(gate.status)] in text, f"{ask.name}: the card says {text!r}"
