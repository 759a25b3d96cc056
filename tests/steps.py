"""Steps of the stateful machine: each is a call of the engine, and what the model makes of what was heard of it."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from core.answers import Answer
from core.engine import ResumeEngine
from core.errors import AskgateError
from core.gates import Action, Decision, Outcome
from core.ids import gate_id
from core.policy import Actor, Key, Person
from core.store import lua
from tests.model import Json, Run, Who, Word, World

DONE, AWAY = "done", "store-unavailable"
LATE = ("expired", "already-settled")

ANA, BEN, CHO, DAN = (("T1", f"U{n}") for n in (1, 2, 3, 8))
ADMIN, NAMESAKE, CI = ("T1", "U9"), ("T2", "U1"), ("key", "ci")
PEOPLE: tuple[Who, ...] = (ANA, BEN, CHO, ADMIN, DAN, NAMESAKE)
ANYBODY: tuple[Who, ...] = (*PEOPLE, CI, ("key", "other"))

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
NO_VALUES = [Word("decline", values={"a": 1}, fits=False), Word("approve"), Word("decline"), Word("cancel")]
GOOD_FORM, LONG = {"city": "Bonn", "size": "m"}, "x" * 4097
WORDS: dict[str, list[Word]] = {
    "question": [
        Word("answer", focused := {"answers": {"Which scope should be used?": "Focused"}}, kept=focused),
        Word("answer", {"response": "Neither"}, kept={"answers": {}, "response": "Neither"}),
        Word("decline"),
        Word("answer", {"answers": {"?": "x"}}, fits=False),
        Word("answer", fits=False),
        *NO_VALUES,
    ],
    "form": [
        Word("accept", GOOD_FORM, kept=GOOD_FORM),
        Word("accept", {"city": "Rom", "size": None}, kept={"city": "Rom"}),
        Word("accept", fits=False),
        Word("accept", {"city": LONG}, fits=False),
        Word("accept", GOOD_FORM | {"ghost": 1}, fits=False),
        *NO_VALUES,
    ],
    "link": [Word("accept"), Word("accept", {"a": 1}, fits=False), Word("answer", "done"), *NO_VALUES],
    "custom": [
        Word("answer", {"n": [], "f": 1.5}, kept={"n": [], "f": 1.5}),
        Word("answer", "text", kept="text"),
        Word("answer", fits=False),
        *NO_VALUES,
    ],
    "approval": [
        Word("approve"),
        Word("deny"),
        Word("deny", comment="not this one"),
        Word("approve", seen="first", comment=" fine "),
        Word("approve", seen="other"),
        Word("deny", seen="first"),
        *(Word("approve", {"override_args": edit}, edit=edit) for edit in ({"path": "/a"}, {"path": "/b"})),
        Word("approve", {"override_args": {"path": "/c"}}, edit={"path": "/c"}, comment="rather this"),
        Word("approve", {"override_args": {"path": "/a"}}, edit={"path": "/a"}, seen="first"),
        Word("approve", {"override_args": {"path": "/b"}}, edit={"path": "/b"}, seen="other"),
        Word("approve", {"override_args": {"path": 5}}, edit={"path": 5}, fits=False),
        Word("approve", True, fits=False),
        Word("deny", {"override_args": {"path": "/a"}}, fits=False),
        Word("approve_always", comment="trusted"),
        Word("deny", comment=LONG),
        Word("answer", "yes"),
    ],
}
"""What may be said about a gate of each kind, right and wrong."""


@dataclass(frozen=True)
class Said:
    """What came of a call: `done` or the error's slug, and the gate that the error is about."""

    word: str
    gate: int | None = None
    result: Any = None


async def hear(call: Awaitable[Any]) -> Said:
    try:
        return Said(DONE, result=await call)
    except AskgateError as error:
        gate = error.extra.get("gate")
        return Said(error.slug, gate.doc.index if gate else None)


def actor(who: Who) -> Actor:
    return Key(key=who[1]) if who[0] == "key" else Person(team=who[0], user=who[1])


def via(who: Who) -> str:
    return "api" if who[0] == "key" else "slack"


class Step(Protocol):
    """One call about one run. ``script`` is what does it in the store."""

    script: lua.Script

    def aimed(self, run: Run) -> Self:
        """The same with numbers of gates of the run as it is; before that they are any numbers."""

    def call(self, engine: ResumeEngine, run_id: str, run: Run) -> Awaitable[Any]: ...

    def heard(self, world: World, run: Run, said: Said) -> None:
        """Look whether the model allows what was said, and do it there. Raises AssertionError."""

    def unheard(self, world: World, run: Run) -> None:
        """The store did it, and nobody heard so."""


def aim(run: Run, number: int) -> int:
    """The index of one of the run's gates; mostly one that can still be settled."""
    indexes = [n for n, gate in enumerate(run.gates) if gate.pending and number % 4] or range(len(run.gates))
    return indexes[number // 4 % len(indexes)]


@dataclass(frozen=True)
class Decide:
    """Somebody's word on one gate or more: pairs of a number of a gate and a number of what may be said about it."""

    picks: tuple[tuple[int, int], ...]
    who: Who
    script = lua.DECIDE

    def aimed(self, run: Run) -> Self:
        return replace(self, picks=tuple((aim(run, number), pick) for number, pick in self.picks))

    def words(self, run: Run) -> dict[int, Word]:
        found: dict[int, Word] = {}
        for index, pick in self.picks:
            gate = run.gates[index]
            choice = WORDS[gate.kind]
            if pick % 3:  # mostly sense
                choice = [word for word in choice if word.fits and word.action in gate.offered]
            found.setdefault(index, choice[pick // 3 % len(choice)])
        return found

    def call(self, engine: ResumeEngine, run_id: str, run: Run) -> Awaitable[Any]:
        answers = []
        for index, word in self.words(run).items():
            digests = {"present": None, "first": run.gates[index].first_digest, "other": "0" * 64}
            digest = digests[word.seen]
            answers.append(Answer(index, Action(word.action), word.values, word.comment, digest))
        return engine.decide_all(run_id, answers, by=actor(self.who), via=via(self.who))

    def heard(self, world: World, run: Run, said: Said) -> None:
        words = self.words(run)
        why = world.why_not_decide(run, words, self.who)
        if not why:
            assert said.word == DONE, said
            world.decide(run, words, self.who, via(self.who))
            return
        assert said.gate is not None, (said, why)
        assert (said.gate, said.word) in why
        gate = run.gates[said.gate]
        if gate.pending and said.word == "expired":
            world.sweep(run)
        world.refused(run, gate, self.who, via(self.who), said.word)

    def unheard(self, world: World, run: Run) -> None:
        words = self.words(run)
        if world.why_not_decide(run, words, self.who):
            world.sweep(run)
        else:
            world.decide(run, words, self.who, via(self.who))


@dataclass(frozen=True)
class Draft:
    number: int
    who: Who
    picks: Any
    script = lua.DRAFT

    def aimed(self, run: Run) -> Self:
        return replace(self, number=aim(run, self.number))

    def call(self, engine: ResumeEngine, run_id: str, run: Run) -> Awaitable[Any]:
        person = actor(self.who)
        assert isinstance(person, Person)
        return engine.draft(gate_id(run_id, self.number), person, self.picks)

    def heard(self, world: World, run: Run, said: Said) -> None:
        gate = run.gates[self.number]
        why = world.why_not_draft(run, gate, self.who)
        if not why:
            assert said.word == DONE, said
            world.draft(run, gate, self.who, self.picks)
            return
        assert said.word in why
        if said.word in LATE:
            world.sweep(run)
        world.refused(run, gate, self.who, "slack", said.word)

    def unheard(self, world: World, run: Run) -> None:
        gate = run.gates[self.number]
        if world.why_not_draft(run, gate, self.who):
            world.sweep(run)
        else:
            world.draft(run, gate, self.who, self.picks)


@dataclass(frozen=True)
class Withdraw:
    """The owner cancels (one gate or all), or what is pending cannot be delivered, or the host has moved on."""

    outcome: str
    reason: str | None
    number: int | None = None
    script = lua.WITHDRAW

    def aimed(self, run: Run) -> Self:
        return replace(self, number=None if self.number is None else aim(run, self.number))

    def call(self, engine: ResumeEngine, run_id: str, run: Run) -> Awaitable[Any]:
        if self.outcome == "cancelled":
            return engine.cancel(run_id, self.reason, by=actor(run.owner), via="api", index=self.number)
        if self.outcome == "undeliverable":
            return engine.undeliverable(run_id, self.reason or "gone")
        return self._superseded(engine, run_id)

    async def _superseded(self, engine: ResumeEngine, run_id: str) -> int:
        decision = Decision(
            outcome=Outcome.SUPERSEDED, at=engine.store.clock.now_ms(), via="host", detail=self.reason
        )
        return await engine.store.withdraw(
            await engine.run(run_id),
            outcome="superseded",
            decision=decision.model_dump_json(exclude_none=True),
            by=None,
            via="host",
            reason=self.reason,
        )

    def heard(self, world: World, run: Run, said: Said) -> None:
        count = self._do(world, run)
        if self.outcome == "cancelled":
            assert said.word == (DONE if count else "not-waiting"), said
            if not count:
                world.refused(run, None, run.owner, "api", said.word)
        else:
            assert (said.word, said.result) == (DONE, count)

    def unheard(self, world: World, run: Run) -> None:
        self._do(world, run)

    def _do(self, world: World, run: Run) -> int:
        if self.outcome == "cancelled":
            return world.withdraw(run, "cancelled", self.reason, run.owner, "api", self.number)
        reason = (self.reason or "gone") if self.outcome == "undeliverable" else self.reason
        return world.withdraw(run, self.outcome, reason, None, "host", None)


@dataclass(frozen=True)
class Amend:
    """Extend by ``seconds``, reassign to ``names``, or delegate ``to`` somebody."""

    number: int
    who: Who
    seconds: int | None = None
    names: tuple[str, ...] | None = None
    to: Who | None = None
    script = lua.AMEND

    def aimed(self, run: Run) -> Self:
        return replace(self, number=aim(run, self.number))

    def call(self, engine: ResumeEngine, run_id: str, run: Run) -> Awaitable[Any]:
        gate, by = gate_id(run_id, self.number), actor(self.who)
        amend = engine.amendments
        if self.seconds is not None:
            return amend.extend(gate, self.seconds, by=by, via=via(self.who))
        if self.names is not None:
            return amend.reassign(gate, self.names, by=by, via=via(self.who))
        to = actor(self.to or ANA)
        assert isinstance(by, Person)
        assert isinstance(to, Person)
        return amend.delegate(gate, to, by=by, via=via(self.who))

    def heard(self, world: World, run: Run, said: Said) -> None:
        why = self._why_not(world, run)
        if not why:
            assert said.word == DONE, said
            self._do(world, run)
            return
        assert said.word in why
        if said.word in LATE:
            world.sweep(run)
        world.refused(run, run.gates[self.number], self.who, via(self.who), said.word)

    def unheard(self, world: World, run: Run) -> None:
        if self._why_not(world, run):
            world.sweep(run)
        else:
            self._do(world, run)

    def _why_not(self, world: World, run: Run) -> set[str]:
        gate = run.gates[self.number]
        if self.seconds is not None:
            return world.why_not_extend(run, gate, self.seconds, self.who)
        if self.names is not None:
            return world.why_not_reassign(run, gate, self.names, self.who)
        return world.why_not_delegate(run, gate, self.who, self.to or ANA)

    def _do(self, world: World, run: Run) -> None:
        gate = run.gates[self.number]
        if self.seconds is not None:
            world.extend(run, gate, self.seconds, self.who, via(self.who))
        elif self.names is not None:
            world.reassign(run, gate, self.names, self.who, via(self.who))
        else:
            names = world.in_stead(gate, self.who, self.to or ANA)
            world.reassign(run, gate, names, self.who, via(self.who), reason="delegated")


@dataclass(frozen=True)
class Expire:
    """The agenda's handler, at whatever moment."""

    script = lua.EXPIRE

    def aimed(self, run: Run) -> Self:
        return self

    def call(self, engine: ResumeEngine, run_id: str, run: Run) -> Awaitable[Any]:
        return engine.expire(run_id)

    def heard(self, world: World, run: Run, said: Said) -> None:
        assert said.word == DONE
        world.sweep(run)

    def unheard(self, world: World, run: Run) -> None:
        world.sweep(run)


def call_body(kind: str, call: str) -> Json:
    """One item of a run's pending batch."""
    body: Json = {
        "tool_call_id": call,
        "tool_name": "ask_user_question" if kind == "question" else "delete_file",
    }
    controls = ["accept", "decline", "cancel"]
    fields = [
        {"name": "city", "kind": "text", "required": True},
        {"name": "size", "kind": "select", "options": [{"value": "s"}, {"value": "m"}]},
    ]
    options = [{"label": label, "description": "What it means"} for label in ("Focused", "Broad")]
    ask = {
        "question": "Which scope should be used?",
        "header": "Scope",
        "options": options,
        "multiSelect": False,
    }
    match kind:
        case "question":
            return body | {"args": {"questions": [ask]}}
        case "form":
            return body | {"kind": "form", "form": {"fields": fields, "controls": controls}}
        case "link":
            return body | {
                "kind": "link",
                "link": {"origin": "https://pay.example.com", "controls": controls},
            }
        case "custom":
            return body | {"args": {"n": 1}}
    always = {"always": ["delete_file in /tmp"]} if kind == "always" else {}
    return body | {"args": {"path": "/tmp/old.log"}, "args_schema": SCHEMA} | always
