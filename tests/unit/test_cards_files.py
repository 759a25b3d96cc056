"""The file with long arguments: when one is wanted, what it holds, and what can be done without it."""

from __future__ import annotations

import json

from bot import words
from bot.cards import modals
from bot.cards.arguments import arguments
from bot.cards.card import pack, render
from bot.cards.files import file_data, file_name, file_refused, file_there, file_title, file_wanted
from bot.cards.limits import check_view
from bot.cards.reading import MODAL_BYTES, too_long
from core.gates import Gate, Outcome
from core.runs import Card, CardFile, Run
from tests.runs import approval, body
from tests.unit.cards import buttons, card, code_of, edited, said, settled, stored, with_gates
from tests.unit.test_cards_legal import check_card

LONG = {"text": "<line> & more\n" * 30_000}


def run_of(args: dict, **policy: object) -> Run:
    return stored(body([], [approval("a", args=args)], policy={"approvers": ["U1"], "edits": True, **policy}))


def shown_in(run: Run, *files: tuple[CardFile, ...]) -> Run:
    """The run with a message for each of these, one a copy."""
    cards = [
        Card(channel=f"C{n}", ts=f"{n}.000001", gates=(0,), copy_of=n, files=own)
        for n, own in enumerate(files)
    ]
    return run.model_copy(update={"cards": tuple(cards)})


def file(gate: Gate, **more: object) -> CardFile:
    return CardFile(gate=gate.doc.index, digest=gate.digest or "", id="F1", **more)


def pages(gate: Gate, *, there: bool) -> list[dict]:
    first = modals.full(gate, 0, file=there)
    count = int(buttons(first)["Last page"]["action_id"].partition(":")[2]) + 1
    return [modals.full(gate, page, file=there) for page in range(count)]


def test_long_arguments_are_approved_behind_their_beginning_once_the_file_is_there() -> None:
    gate = run_of(LONG).gates[0]
    for there in (False, True):
        found = pages(gate, there=there)
        assert all(check_view(page) == [] for page in found)
        assert 8 <= len(found) <= 12
        read = "".join(code_of(page) for page in found)
        assert arguments(gate).startswith(read.removesuffix("…"))
        approving = ["Approve" in buttons(page) for page in found]
        assert approving == [False] * (len(found) - 1) + [there]
        assert "Reject" in buttons(found[-1])
        note = words.GOES_ON_IN_FILE.format(name=file_name(gate)) if there else words.NO_FILE_YET
        assert note in said(found[-1])
    assert words.ARGUMENTS_IN_FILE in said(card(run_of(LONG))[0].blocks)


def test_what_fits_the_modal_needs_no_file() -> None:
    for size in (3000, 100_000, MODAL_BYTES - 20):
        gate = run_of({"text": "x" * size}).gates[0]
        assert not too_long(gate)
    assert too_long(run_of({"text": "x" * MODAL_BYTES}).gates[0])
    assert not file_wanted(settled(run_of(LONG).gates[0], Outcome.DENIED, "no"))


def test_the_file_is_there_when_each_copy_has_it_with_the_present_arguments() -> None:
    run = run_of(LONG)
    gate = run.gates[0]
    ready, begun = (file(gate, shared=True),), (file(gate),)
    assert file_there(shown_in(run, ready), gate)
    assert file_there(shown_in(run, ready, ready), gate)
    assert not any(
        file_there(state, gate)
        for state in (run, shown_in(run, ()), shown_in(run, begun), shown_in(run, ready, ()))
    )
    changed = edited(gate, {"text": "other\n" * 60_000})
    assert too_long(changed)
    assert not file_there(shown_in(with_gates(run, [changed]), ready), changed)


def test_a_refused_file_is_said_on_a_legal_card_and_takes_no_room_of_others() -> None:
    run = stored(body([], [approval(f"a{n}", args={**LONG, "n": n}) for n in range(9)]))
    parts = pack(run)
    files = tuple(file(gate, refused="file_uploads_disabled") for gate in run.gates)
    cards = tuple(
        Card(channel="C1", ts=f"{n}.000001", gates=part, files=files) for n, part in enumerate(parts)
    )
    refused = run.model_copy(update={"cards": cards})
    assert file_refused(refused, run.gates[0]) == "file_uploads_disabled"
    assert pack(refused) == parts
    check_card(refused, parts)
    for message in render(refused, parts):
        assert said(message.blocks).count("`file_uploads_disabled`") == len(message.gates)


def test_the_file_is_the_arguments_as_json_with_nothing_invisible_and_no_word_of_the_agent_around_it() -> (
    None
):
    args = {"a\u202e": ["<@U1>", "\u200b", 1.0, None], "<!here>": {"b": []}}
    gate = run_of(args).gates[0]
    data = file_data(gate)
    assert json.loads(data) == args
    assert data.isascii()
    assert file_name(gate) == f"arguments-{gate.digest[:8]}.json"
    assert file_title(gate) == f"Arguments {gate.digest[:8]}"


def test_nested_arguments_do_not_grow_a_hundredfold() -> None:
    value: object = [0] * 100_000
    for _ in range(50):
        value = [value]
    gate = run_of({"deep": value}).gates[0]
    assert too_long(gate)
    assert len(file_data(gate)) < 1_000_000
