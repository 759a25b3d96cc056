"""Lists, pages of single gates, the Home and the admins' modals: legal, and no text of an agent's is markup there."""

from __future__ import annotations

from itertools import islice

from hypothesis import given

from bot.cards.home import FILTERS, LIVE, Overview, home_view
from bot.cards.inbox import Page, Waiting, headed, list_page
from bot.cards.limits import check_message, check_view
from bot.cards.managing import MODALS
from bot.cards.pages import gate_page, load, page_modal, stats_page
from bot.cards.queries import PAGES_BACK, Query, Which
from core.counts import Counts
from core.gates import Outcome
from core.runs import Run
from tests.unit.cards import few, runs, settled, states, texts, with_gates
from tests.unit.test_cards_legal import check_markup

URL = "https://example.slack.com/archives/C0123456789/p1700000000000000?thread_ts=1700000000.000000&cid=C1"
LAST = (1_700_000_000_000, "gate_99_01JZ0000000000000000000000_127")
DEEP = Query(Which.THREAD, "C0123456789/1700000000.000000", (LAST,) * PAGES_BACK)
COUNTS = Counts(10**6, 10**6, 10**6, 10**6, (1_700_000_000_000, "run_00_01JZ0000000000000000000000"))
NOTES = ["One note.", "Another note."]


def check_page(page: Page) -> None:
    assert check_message({"text": page.text, "blocks": headed(page)}) == []
    view = page_modal(page)
    assert check_view(view) == []
    assert load(view["private_metadata"]) == (page.query, page.gate)
    check_markup(view)


def items(run: Run, count: int) -> list[Waiting]:
    """A page of gates, which may be of one run or, as here, of runs that are alike."""
    gates = [run.gates[number % len(run.gates)] for number in range(count)]
    copies = [
        gate.model_copy(update={"doc": gate.doc.model_copy(update={"id": f"{LAST[1][:-3]}{number}"})})
        for number, gate in enumerate(gates)
    ]
    return [Waiting(run, gate, URL) for gate in copies]


@few
@given(runs(), texts(3000))
def test_a_list_is_legal_whatever_stands_in_it(run: Run, text: str) -> None:
    unseen = settled(run.gates[0], Outcome.UNDELIVERABLE, text)
    dead = with_gates(run, [unseen, *run.gates[1:]]).model_copy(update={"error": text, "status": "failed"})
    filters = [Query(each) for each in (Which.ALL, Which.MINE, Which.ASKED)]
    for query, listed in ((DEEP, items(run, 10)), (Query(Which.DEAD), items(dead, 10)), (DEEP, [])):
        check_page(list_page(query, listed, NOTES, admin=True, further=DEEP, filters=filters))


@few
@given(runs(), texts(3000))
def test_a_gates_page_is_legal_in_every_state_of_it(run: Run, text: str) -> None:
    run = run.model_copy(update={"doc": run.doc.model_copy(update={"external_id": text or None})})
    for state in islice(states(with_gates(run, list(run.gates[:1])), text), 2):
        item = Waiting(state, state.gates[0], URL)
        check_page(gate_page(item, admin=True, back=DEEP, words_above="Done."))
        for make in MODALS.values():
            view = make(state, state.gates[0])
            assert check_view(view) == []
            check_markup(view)


@few
@given(runs(), texts(3000))
def test_the_home_is_legal_with_whatever_waits(run: Run, text: str) -> None:
    for state in islice(states(run, text), 1):
        live = items(state, LIVE)
        for query in (FILTERS[0], DEEP):
            view = home_view(query, live, NOTES, admin=True, further=DEEP)
            assert check_view(view) == []
            check_markup(view)
        first = {which: (item,) for which, item in zip((Which.EXPIRING, Which.DEAD), live[1:], strict=False)}
        overview = Overview(COUNTS, live[0], first)
        view = home_view(Query(Which.OVERVIEW), (), (), admin=True, further=None, overview=overview)
        assert check_view(view) == []
        check_markup(view)


def test_the_counts_are_legal() -> None:
    check_page(stats_page(COUNTS))
