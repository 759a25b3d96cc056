"""A run's fields in the store, as a run and back."""

from __future__ import annotations

from core.gates import Gate
from core.opening import gate_docs, run_doc
from core.runs import Run, RunStatus
from core.store.codec import load_run, run_fields
from tests.runs import approval, question_call, run_request

RUN = "run_03_01JZ0000000000000000000000"


def test_what_is_loaded_is_what_was_stored_with_every_field_that_the_models_have() -> None:
    request = run_request([question_call()], [approval()], title="A title", external_id='a"b')
    doc = run_doc(RUN, request, "ci", now_ms=1000, channel=None)
    docs = gate_docs(doc, request)
    flat = [*run_fields(doc, docs, 2000, None, ("host:api",)), "status", "waiting", "rev", "1"]
    loaded = load_run(RUN, dict(zip(flat[::2], flat[1::2], strict=True)))
    gates = [
        Gate(doc=gate, policy=gate.policy, status="pending", rev=1, deadline=2000, created_at=1000)
        for gate in docs
    ]
    assert loaded == Run(doc=doc, status=RunStatus.WAITING, rev=1, gates=tuple(gates), index=("host:api",))
    assert loaded.model_dump() == Run.model_validate(loaded.model_dump()).model_dump()
    assert loaded.model_copy(update={"rev": 2}).rev == 2


def test_a_copy_of_a_question_with_other_arguments_has_the_other_questions() -> None:
    request = run_request([question_call()])
    (doc,) = gate_docs(run_doc(RUN, request, "ci", now_ms=1000, channel=None), request)
    assert doc.asks.questions[0].question == "Which scope should be used?"
    other = {**doc.args, "questions": [{**doc.args["questions"][0], "question": "Which one?"}]}
    assert doc.model_copy(update={"args": other}).asks.questions[0].question == "Which one?"
