"""JSON of any shape to every model and check that takes input: a clear refusal, and never anything else."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from core import approvals
from core.answers import Answer, check_answer
from core.api import requests as api
from core.errors import Invalid
from core.escalations import Escalation
from core.forms import FormError, FormRequest, check_form
from core.gates import Action, Gate
from core.links import LinkRequest
from core.opening import gate_docs, run_doc
from core.places import Place
from core.policy import Person, PolicyRequest
from core.questions import AnswerError, AskUserQuestion, check_answers
from core.requests import Callback, RunRequest, input_errors
from core.schemas import CHECK_S, SchemaMismatch, check_against, check_schema
from tests.anything import schema_values, spoilt, values
from tests.runs import FOCUSED, Json, approval, ask, body, question_call

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
many = settings(max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])

SECRET = "whsec_" + "QUFB" * 8
FORM: Json = {
    "title": "t",
    "body": "b",
    "fields": [
        {
            "name": "n",
            "kind": "text",
            "label": "l",
            "format": "email",
            "min_length": 1,
            "max_length": 9,
            "default": "a@b.c",
        },
        {"name": "i", "kind": "integer", "minimum": 1, "maximum": 9, "default": 3, "required": True},
        {"name": "s", "kind": "select", "options": [{"value": "v", "label": "l"}], "default": "v"},
        {"name": "m", "kind": "multi_select", "options": [{"value": "v"}], "min_items": 1, "max_items": 1},
        {"name": "c", "kind": "confirm", "default": True},
    ],
    "controls": ["accept", "decline", "cancel"],
}
ELICITATION: Json = {
    "type": "object",
    "properties": {
        "text": {
            "type": "string",
            "title": "t",
            "format": "uri",
            "minLength": 1,
            "maxLength": 9,
            "default": "a:b",
        },
        "number": {"type": "number", "minimum": 1, "maximum": 9, "default": 2},
        "whole": {"type": "integer", "description": "d"},
        "yes": {"type": "boolean", "default": True},
        "one": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "default": "a"},
        "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
        "some": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1, "maxItems": 1},
        "more": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
    },
    "required": ["text"],
}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "^/", "minLength": 1},
        "n": {"multipleOf": 2, "$ref": "#/$defs/x"},
    },
    "required": ["path"],
    "$defs": {"x": {"type": "number"}},
}
PLACE, POLICY = (
    {"channel": "C1", "thread_ts": "1.000001"},
    {"approvers": ["U1", "T2:U9"], "responders": ["channel"], "quorum": 1},
)
ESCALATE = {"after_s": 5, "place": {"user": "U1"}, "approvers": ["S1"]}
RUN = body(
    [
        question_call("q", ask(multi=True)),
        {"tool_call_id": "c", "tool_name": "any", "args": '{"a": [1, {}]}', "schema": SCHEMA},
        {"kind": "form", "tool_call_id": "f", "tool_name": "fill", "form": FORM},
        {"kind": "form", "tool_call_id": "e", "tool_name": "fill", "form": {"schema": ELICITATION}},
        {"kind": "link", "tool_call_id": "l", "tool_name": "look", "link": {"url": "https://example.com/a"}},
    ],
    [approval("a", args_schema=SCHEMA, reason="r", risk="low", always=["x"])],
    host="api",
    external_id="x",
    title="t",
    state="s",
    requester={"team": "T1", "user": "U1"},
    timeout_s=60,
    remind_after_s=[5],
    escalate=ESCALATE,
    callback={"url": "https://example.com/hook", "secret": SECRET},
    policy={**POLICY, "edits": True},
)
RESUME = {
    "calls": {"q": {"status": "returned", "value": FOCUSED}, "c": {"status": "failed", "message": "m"}},
    "approvals": {"a": {"action": "approve", "override_args": {"path": "/x"}}},
}
MODELS: list[tuple[type[BaseModel], Json]] = [
    (RunRequest, RUN),
    (AskUserQuestion, {"questions": [ask(), ask("Which?", "a", "b", multi=True)]}),
    (FormRequest, FORM),
    (FormRequest, {"schema": ELICITATION}),
    (
        LinkRequest,
        {
            "title": "t",
            "origin": "https://example.com",
            "url": "https://example.com/a",
            "controls": ["accept"],
        },
    ),
    (PolicyRequest, POLICY),
    (Place, PLACE),
    (Person, {"team": "T1", "user": "U1"}),
    (Escalation, ESCALATE),
    (Callback, {"url": "https://example.com/hook", "secret": SECRET}),
    (
        api.DecideBody,
        {"action": "answer", "values": FOCUSED, "comment": "c", "by": {"team": "T1", "user": "U1"}},
    ),
    (api.ResumeBody, RESUME),
    (api.CancelBody, {"reason": "r"}),
    (api.ClaimBody, {"host": "api", "max": 3, "wait_s": 0, "lease_s": 5}),
    (api.AckBody, {"lease": "l"}),
    (api.NackBody, {"lease": "l", "retry_in_s": 1, "error": "e"}),
    (api.RunQuery, {"wait": "1"}),
    (
        api.GatesQuery,
        {"status": "pending", "channel": "C1", "host": "api", "user": "T1:U1", "q": "x", "limit": "3"},
    ),
    (api.AuditQuery, {"run": "x", "gate": "y", "after": "1-1-1"}),
]


def told(error: ValidationError) -> None:
    """What is wrong can be said: as JSON in UTF-8, each with a place and a sentence."""
    items = input_errors(error)
    assert items
    assert all(item["msg"] for item in items)
    json.dumps(items).encode()


def read(model: type[BaseModel], value: Any) -> BaseModel | None:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        told(error)
        return None


@pytest.mark.parametrize(
    ("model", "whole"), MODELS, ids=[f"{m.__name__}-{n}" for n, (m, _) in enumerate(MODELS)]
)
def test_what_is_right_is_read(model: type[BaseModel], whole: Json) -> None:
    assert read(model, whole) is not None


@pytest.mark.parametrize(
    ("model", "whole"), MODELS, ids=[f"{m.__name__}-{n}" for n, (m, _) in enumerate(MODELS)]
)
@few
@given(data=st.data())
def test_a_model_reads_or_refuses_whatever_it_gets(
    model: type[BaseModel], whole: Json, data: st.DataObject
) -> None:
    read(model, data.draw(values | spoilt(whole) | spoilt(whole, schema_values)))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("model", "whole"), MODELS, ids=[f"{m.__name__}-{n}" for n, (m, _) in enumerate(MODELS)]
)
@many
@given(data=st.data())
def test_a_model_reads_or_refuses_very_many(model: type[BaseModel], whole: Json, data: st.DataObject) -> None:
    read(model, data.draw(values | spoilt(whole) | spoilt(whole, schema_values)))


# the checks of what people and hosts say


def gates(run: Json) -> list[Gate]:
    request = RunRequest.model_validate(run)
    doc = run_doc("run_00_01M8MPM8FY82Y0KET4SETX4WP4", request, "ci", now_ms=0, channel=None)
    return [
        Gate(doc=gate, policy=gate.policy, status="pending", rev=1, deadline=1, created_at=0)
        for gate in gate_docs(doc, request)
    ]


GATES = gates(RUN)
SAID: dict[str, Json] = {
    "q": FOCUSED,
    "c": {"path": "/a", "n": 2},
    "f": {"n": "a@b.c", "i": 3, "s": "v", "m": ["v"], "c": False},
    "e": {
        "text": "a:b",
        "number": 2,
        "whole": 1,
        "yes": True,
        "one": "a",
        "titled": "a",
        "some": ["a"],
        "more": ["a"],
    },
    "l": {},
    "a": {"override_args": {"path": "/a", "n": 2}},
}


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.doc.tool_call_id)
@few
@given(data=st.data())
def test_an_answer_is_taken_or_refused(gate: Gate, data: st.DataObject) -> None:
    whole = SAID[gate.doc.tool_call_id]
    answer = Answer(
        gate.doc.index,
        data.draw(st.sampled_from(list(Action))),
        data.draw(values | spoilt(whole) | spoilt(whole, schema_values)),
        data.draw(st.none() | st.text(max_size=5) | st.just("\ud800")),
    )
    try:
        taken = check_answer(gate, answer)
    except Invalid as refusal:
        json.dumps([refusal.detail, refusal.errors]).encode()
    else:
        json.dumps(taken, allow_nan=False).encode()


CHECKS: dict[str, tuple[Callable[[Any], object], Json]] = {
    "arguments": (approvals.parse_args, {"a": [1, {"b": "c"}]}),
    "digest": (
        lambda value: approvals.digest(value) if isinstance(value, dict) else None,
        {"a": [1, {"b": "c"}]},
    ),
    "form": (lambda value: check_form(FormRequest.model_validate(FORM).fields, value), SAID["f"]),
    "questions": (
        lambda value: check_answers(AskUserQuestion.model_validate({"questions": [ask()]}), value),
        FOCUSED,
    ),
    "schema": (lambda value: check_schema(value) if isinstance(value, dict) else None, SCHEMA),
    "value": (lambda value: check_against(SCHEMA, value), SAID["c"]),
}


@pytest.mark.parametrize("name", CHECKS)
@few
@given(data=st.data())
def test_a_check_passes_or_refuses(name: str, data: st.DataObject) -> None:
    check, whole = CHECKS[name]
    try:
        check(data.draw(values | spoilt(whole) | spoilt(whole, schema_values)))
    except (Invalid, AnswerError, FormError, ValueError) as refusal:
        json.dumps(str(refusal)).encode()


@few
@given(schema=spoilt(SCHEMA, schema_values), value=values | schema_values)
def test_any_schema_that_is_taken_can_be_checked_against(schema: Any, value: Any) -> None:
    if isinstance(schema, dict):
        with contextlib.suppress(ValueError):
            check_schema(schema)
            check_against(schema, value)


# what a search finds too seldom


def elicited(**member: Any) -> Json:
    return {"schema": {"type": "object", "properties": {"a": member}}}


def needing(required: object) -> Json:
    return {"schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": required}}


NO_LISTS: list[Any] = [5, "a", {"a": 1}, [[]], [5], ["b"]]
NO_KINDS: list[Any] = [["string"], {}, None, 5]
NO_ITEMS: list[Any] = [[], {"enum": 5}, {"anyOf": ["a"]}]


@pytest.mark.parametrize(
    "form",
    [
        *(needing(given) for given in NO_LISTS),
        *(elicited(type=given) for given in NO_KINDS),
        *(elicited(type="string", enum=enum) for enum in (5, "abc", {"x": 1}, [5])),
        *(elicited(type="string", enum=["a"], enumNames=names) for names in (5, "xyz", {"a": 1}, [5])),
        *(elicited(type="string", oneOf=options) for options in (5, [5], {"const": "a"}, [None])),
        *(elicited(type="array", items=given) for given in NO_ITEMS),
        {"fields": [{"name": "a", "kind": "integer", "default": float("inf")}]},
        {"fields": [{"name": "a", "kind": "number", "default": float("nan")}]},
        {"fields": [{"name": "a", "kind": "number", "minimum": float("nan")}]},
        {"fields": [{"name": "a", "kind": "text", "format": "uri", "default": "http://[::1"}]},
    ],
)
def test_a_form_that_cannot_be_is_refused(form: Json) -> None:
    with pytest.raises(ValidationError) as refused:
        FormRequest.model_validate(form)
    told(refused.value)


@pytest.mark.parametrize("number", [10**400, -(10**400), float("nan"), float("inf")])
@pytest.mark.parametrize("kind", ["integer", "number"])
def test_a_number_beyond_all_bounds_is_no_answer(kind: str, number: float) -> None:
    form = {
        "kind": "form",
        "tool_call_id": "f",
        "tool_name": "t",
        "form": {"fields": [{"name": "a", "kind": kind}]},
    }
    [gate] = gates({**RUN, "pending": {"calls": [form]}})
    with pytest.raises(Invalid):
        check_answer(gate, Answer(0, Action.ACCEPT, {"a": number}))


@pytest.mark.parametrize("address", ["https://x\x00", "https://x\x7f", "https://x\u202e.com"])
def test_an_address_shows_what_it_is(address: str) -> None:
    with pytest.raises(ValidationError, match="wanted an http or https address"):
        LinkRequest.model_validate({"url": address})


DOUBLING = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}}


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        # whichever bound a busy machine meets first
        ({"$ref": "#"}, 1, "too deep|too long"),
        ({"not": {"$ref": "#"}}, 1, "too deep|too long"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, 1, "too deep|too long"),
        ({"$ref": "#/$defs/d0", "$defs": DOUBLING}, 1, "too long"),
        ({"pattern": "^(a|aa)+$"}, "a" * 64 + "b", "too long|does not match"),
        ({"pattern": "^a*a*a*a*a*a*$"}, "a" * 4096 + "b", "too long"),
        ({"uniqueItems": True}, [{"a": [n % 4000]} for n in range(5000)], "there twice"),
        ({"multipleOf": 0.1}, 10**400, "cannot be checked"),
        ({"$ref": "#/type", "type": "object"}, {}, "cannot be checked"),
        ({"properties": {"a": True}, "$ref": "#/properties/a/b"}, {}, "cannot be checked"),
        ({"$ref": "#/enum/x", "enum": [1]}, 1, "cannot be checked"),
        ({"$id": "http://[", "$ref": "x"}, 1, "cannot be checked"),
        ({"$ref": "https://example.com/x"}, 1, "does not hold"),
    ],
)
def test_a_schema_that_would_go_on_for_ever_is_refused_in_time(schema: Json, value: Any, says: str) -> None:
    check_schema(schema)
    began = time.perf_counter()
    with pytest.raises(SchemaMismatch, match=says):
        check_against(schema, value)
    assert time.perf_counter() - began < 20 * CHECK_S


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "a{1,99999999999}"},
        {"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}},
        {"patternProperties": {"^(a+)+$": {}}},
        {"unevaluatedProperties": False, "properties": {f"a{n}": {} for n in range(100)}},
        {"properties": {"a": {"unevaluatedItems": {"type": "string"}}}},
        {"pattern": "|".join(f"a{n}" for n in range(250))},
        {"properties": {f"a{n}": {"pattern": f"a{n}(b|c)*"} for n in range(1000)}},
    ],
)
def test_a_schema_whose_checks_know_no_bound_is_not_taken(schema: Json) -> None:
    with pytest.raises(ValueError, match=r"no JSON Schema|belongs to the top|are not taken|may have at most"):
        check_schema(schema)


def test_a_schema_within_its_bounds_is_checked_in_time() -> None:
    schema = {"properties": {f"a{n}": {"pattern": "a(b|c)*" * 140} for n in range(990)}}
    began = time.perf_counter()
    check_schema(schema)
    assert time.perf_counter() - began < 20


def test_a_schema_may_name_its_dialect_and_have_properties_of_any_name() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"$schema": {"type": "string"}},
    }
    check_schema(schema)
    check_against(schema, {"$schema": "x"})
    with pytest.raises(SchemaMismatch):
        check_against(schema, {"$schema": 1})


def test_one_is_one_point_nought_and_not_true() -> None:
    for same in ([1, 1.0], [[1], [1.0]], [{"a": None}, {"a": None}]):
        with pytest.raises(SchemaMismatch):
            check_against({"uniqueItems": True}, same)
    check_against({"uniqueItems": True}, [1, True, "1", None, 0, False, [], {}, [[]]])
