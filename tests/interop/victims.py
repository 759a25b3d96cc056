"""What the agents of each host ask while askgate is killed, what people say to it, and what the agents are to hear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.gates import Action
from tests.interop.a13n_server import A13n
from tests.interop.conftest import Motus
from tests.interop.kills import TIMEOUT_S, Ask, Word
from tests.interop.looprig_standin import Looprig, ask_user, form, open_url, permission

Json = dict[str, Any]

APPROVES = Word(Action.APPROVE)
DENIES = Word(Action.DENY, comment="wrong file")
DECLINES = Word(Action.DECLINE, comment="no idea")
DECLINED = "The user declined to answer: no idea"
NO_ANSWER = f"No answer within {TIMEOUT_S} s."
WAYS = ("Focused", "Broad, with tests")
FAILURE = {"hex": None}


def answers(value: Any) -> Word:
    return Word(Action.ANSWER, value)


def accepts(**values: Any) -> Word:
    return Word(Action.ACCEPT, values or None)


def question(text: str) -> Json:
    options = [{"label": way, "description": way} for way in WAYS]
    return {"question": text, "header": "Way", "multiSelect": False, "options": options}


# a13n


class OfA13n:
    """A run asks for several things, and is answered at once when all of them are settled."""

    has_keys = True
    answered_by = "host POST /runs/*/resume"

    def __init__(self, a13n: A13n) -> None:
        self._a13n = a13n
        self._runs: dict[str, Json] = {}
        way, who = "Which way?", "Who is to know?"
        answer = {"answers": {way: WAYS[1]}}
        self.agents = [
            [
                Ask(way, _asks(way), answers(answer), _returned(answer)),
                Ask("/well", _fetches("well"), APPROVES, {"action": "approve"}),
                Ask("Wien", _looks_up("Wien"), answers({"in": "AT"}), _returned({"in": "AT"})),
            ],
            [
                Ask(who, _asks(who), DECLINES, _failed(DECLINED)),
                Ask("/ill", _fetches("ill"), DENIES, {"action": "deny", "reason": "wrong file"}),
                Ask("Graz", _looks_up("Graz"), None, _failed(NO_ANSWER)),
            ],
        ]

    @property
    def block(self) -> Json:
        config = self._a13n.config(timeout_s=TIMEOUT_S)
        return {**config.model_dump(exclude_unset=True), "api_key": self._a13n.key}

    async def begin(self, asks: Sequence[Ask]) -> str:
        run = await self._a13n.turn([ask.asked for ask in asks])
        self._runs[run["id"]] = run
        return str(run["id"])

    async def heard(self, handle: str) -> list[Any]:
        """What each successor was given: a second answer would be a second successor's."""
        await self._a13n.heard(self._runs[handle])
        found: list[Any] = []
        for run in await self._a13n.runs(self._runs[handle]):
            given = {**run["resume"]["approvals"], **run["resume"]["calls"]} if run["resume"] else {}
            found += [given[call_id] for call_id in sorted(given)]  # the model counts its calls in their ids
        return found


def _asks(text: str) -> Json:
    return {"name": "ask_user_question", "arguments": {"questions": [question(text)]}}


def _fetches(what: str) -> Json:
    return {"name": "fetch", "arguments": {"url": f"http://127.0.0.1:9/{what}"}}


def _looks_up(city: str) -> Json:
    return {"name": "look_up", "arguments": {"city": city}}


def _returned(value: Any) -> Json:
    return {"status": "returned", "value": value}


def _failed(message: str) -> Json:
    return {"status": "failed", "message": message}


# Motus


class OfMotus:
    """A turn waits for several things at once, or in turn, and each is answered by itself."""

    has_keys = False
    answered_by = "out POST"

    def __init__(self, motus: Motus) -> None:
        self._motus = motus
        way, name, who, why = "Which way?", "What is its name?", "Who is to know?", "What for?"
        self.agents = [
            [
                Ask("well.log", _at_once(_deletes("well.log")), APPROVES, {"approved": True}),
                Ask(
                    way,
                    _at_once(_inputs(question(way))),
                    answers({"answers": {way: WAYS[1]}}),
                    _said(way, WAYS[1]),
                ),
                Ask("warm", _at_once(_picks("warm")), answers({"hex": "#fa0"}), {"hex": "#fa0"}),
                Ask(name, {"in_turn": _inputs(name)}, accepts(q0="Otto"), _said(name, "Otto")),
            ],
            [
                Ask(
                    "ill.log",
                    _at_once(_deletes("ill.log")),
                    DENIES,
                    {"approved": False, "reason": "wrong file"},
                ),
                Ask(who, _at_once(_inputs(question(who))), DECLINES, _unsaid("declined", DECLINED)),
                Ask(why, _at_once(_inputs(why)), None, _unsaid("timed_out", NO_ANSWER)),
                Ask("cold", _at_once(_picks("cold")), None, FAILURE),
            ],
        ]

    @property
    def block(self) -> Json:
        block = {"name": "motus.test", "url": self._motus.url, "channel": "C1", "approvers": ["U1"]}
        return {**block, "timeout_s": TIMEOUT_S, "failures": {"color_picker": FAILURE}}

    async def begin(self, asks: Sequence[Ask]) -> str:
        wanted: dict[str, list[Json]] = {}
        for ask in asks:
            for when, payload in ask.asked.items():
                wanted.setdefault(when, []).append(payload)
        return await self._motus.turn(**wanted)

    async def heard(self, handle: str) -> list[Any]:
        return await self._motus.heard(handle)


def _at_once(payload: Json) -> Json:
    return {"at_once": payload}


def _deletes(path: str) -> Json:
    return {"type": "tool_approval", "tool_name": "delete_file", "tool_args": {"path": path}}


def _inputs(asked: Json | str) -> Json:
    """A question as Motus' own tool asks it; or a text, which becomes a form."""
    return {"type": "user_input", "questions": [asked]}


def _picks(palette: str) -> Json:
    return {"type": "color_picker", "palette": palette}


def _said(text: str, answer: str) -> Json:
    return {"answers": {text: answer}, "selections": {text: [answer]}}


def _unsaid(status: str, error: str) -> Json:
    return {"answers": {}, "status": status, "error": error}


# looprig


class OfLooprig:
    """A session has a gate for each thing. By `serve` there are no keys, but the journal tells what closed a gate."""

    has_keys = True
    answered_by = "out POST"

    def __init__(self, looprig: Looprig, dialect: str) -> None:
        self._looprig = looprig
        self._dialect = dialect
        always = Word(Action.APPROVE_ALWAYS)
        filled = {"version": "1.2", "sure": False}
        self.agents = [
            [
                Ask("well.log", _runs("rm well.log"), APPROVES, ("Approve", {})),
                Ask("all.log", _runs("wc all.log"), always, ("Approve always for this workspace", {})),
                Ask(
                    "Which?",
                    _answers("Which?", *WAYS),
                    accepts(answer=WAYS[1]),
                    ("answer", {"answer": WAYS[1]}),
                ),
                Ask(
                    "Its name?", _answers("Its name?"), accepts(answer="Otto"), ("answer", {"answer": "Otto"})
                ),
                Ask("Version", _fills("Version"), accepts(**filled), ("accept", filled)),
                Ask("//in.example", _opens("https://in.example"), accepts(), ("accept", {})),
            ],
            [
                Ask("ill.log", _runs("rm ill.log"), DENIES, ("Deny", {})),
                Ask("Edition", _fills("Edition"), DECLINES, ("decline", {})),
                Ask("Recall", _fills("Recall"), Word(Action.CANCEL), ("cancel", {})),
                Ask("//out.example", _opens("https://out.example"), DECLINES, ("decline", {})),
                Ask("Variant", _fills("Variant"), None, ("cancel", {})),
                Ask("late.log", _runs("rm late.log"), None, ("Deny", {})),
            ],
        ]

    @property
    def block(self) -> Json:
        where = {
            "url": self._looprig.at(self._dialect),
            "api_key": self._looprig.token,
            "dialect": self._dialect,
        }
        block = {"name": "looprig.test", "channel": "C1", "approvers": ["U1"], "poll_s": 0.1}
        return {**block, **where, "timeout_s": TIMEOUT_S}

    async def begin(self, asks: Sequence[Ask]) -> str:
        session = self._looprig.session()
        for ask in asks:
            session.open(*ask.asked)
        return session.id

    async def heard(self, handle: str) -> list[Any]:
        session = self._looprig.sessions[handle]
        opened = list(session.opened)
        heard = sorted(session.heard, key=lambda answer: opened.index(answer[0]))
        return [(action, values) for _, action, values in heard]


def _runs(command: str) -> tuple[Json, Json]:
    """With the request that the permission is about, which one of the dialects does not tell."""
    return permission(body=command), {"tool_name": "bash", "command": command}


def _fills(label: str) -> tuple[Json]:
    version = {"name": "version", "label": label, "kind": "text", "required": True}
    return (form(version, {"name": "sure", "kind": "confirm"}),)


def _answers(text: str, *choices: str) -> tuple[Json]:
    return (ask_user(text, *choices),)


def _opens(origin: str) -> tuple[Json]:
    return (open_url(origin),)
