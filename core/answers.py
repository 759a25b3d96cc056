"""What a person says about a gate, checked against the gate itself."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from core import approvals, questions
from core.errors import InvalidDecision
from core.forms import FormError, check_form
from core.gates import MAX_COMMENT, Action, Gate, Kind
from core.schemas import SchemaMismatch, check_against
from core.strictjson import has_lone_surrogate

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody says about one gate.

    ``digest`` is that of the arguments the person saw; without it the stored arguments count as seen (a caller of the
    API has read them). ``values`` of an approval are `{"override_args": {…}}`: the arguments as the approver edited
    them.
    """

    index: int
    action: Action
    values: object = None
    comment: str | None = None
    digest: str | None = None


def check_answer(gate: Gate, answer: Answer) -> JsonValue:
    """The values in their normal form: an answer, the content of a form, or the edited arguments.

    Raises InvalidDecision, with the place and the rule that was broken.
    """
    action, kind = answer.action, gate.doc.kind
    if action not in gate.doc.offered:
        offered = ", ".join(gate.doc.offered)
        raise invalid(("action",), f"{action} is not offered by this {kind}; wanted one of: {offered}")
    _check_comment(gate, answer)
    if action is Action.ANSWER and kind is Kind.QUESTION:
        return _question(gate, answer.values)
    if action is Action.ANSWER:
        return _custom(gate, answer.values)
    if action is Action.ACCEPT and kind is Kind.FORM:
        return _form(gate, answer.values)
    if answer.values is None:
        return None
    if action.approves:
        return _override(gate, answer.values)
    raise invalid(("values",), f"{action} takes no values")


def _check_comment(gate: Gate, answer: Answer) -> None:
    comment = answer.comment
    if comment is not None and len(comment) > MAX_COMMENT:
        raise invalid(("comment",), f"wanted at most {MAX_COMMENT} characters, got {len(comment)}")
    if comment is not None and has_lone_surrogate(comment):
        raise invalid(("comment",), "the text has half a surrogate pair")
    wants = gate.policy.reason
    needed = wants == "always" or (wants == "on_reject" and answer.action is Action.DENY)
    if gate.doc.kind is Kind.APPROVAL and needed and not (comment and comment.strip()):
        raise invalid(("comment",), "the policy wants a reason")


def _question(gate: Gate, values: object) -> JsonValue:
    try:
        answers: JsonValue = questions.check_answers(gate.asks, values)
    except questions.AnswerError as error:
        raise invalid(("values", *error.loc), str(error)) from None
    return answers


def _custom(gate: Gate, values: object) -> JsonValue:
    if values is None:
        raise invalid(("values",), "an answer wants a value: text or JSON")
    found = _json(values)
    if gate.doc.answer_schema is not None:
        _check_schema(gate.doc.answer_schema, found, ("values",))
    return found


def _form(gate: Gate, values: object) -> JsonValue:
    fields = gate.doc.form.all_fields if gate.doc.form else ()
    try:
        content: JsonValue = check_form(fields, {} if values is None else values)
    except FormError as error:
        errors = [{**item, "loc": ["values", *item["loc"]]} for item in error.errors]
        raise InvalidDecision(error.detail, errors=errors) from None
    return _json(content)


def _override(gate: Gate, values: object) -> JsonValue:
    """Edited arguments: where the policy allows edits, and the schema (if there is one) allows the arguments."""
    if not gate.policy.edits:
        raise invalid(("values",), "the policy of this approval does not allow edited arguments")
    if not isinstance(values, dict) or set(values) != {"override_args"}:
        raise invalid(("values",), 'wanted {"override_args": {…}}')
    args, where = values["override_args"], ("values", "override_args")
    if not isinstance(args, dict):
        raise invalid(where, "wanted an object")
    try:
        approvals.digest(args)
    except ValueError as error:
        raise invalid(where, str(error)) from None
    if gate.doc.args_schema is not None:
        _check_schema(gate.doc.args_schema, args, where)
    return args


def _check_schema(schema: dict[str, JsonValue], value: JsonValue, where: Loc) -> None:
    try:
        check_against(schema, value)
    except SchemaMismatch as error:
        errors = [{**item, "loc": [*where, *item["loc"]]} for item in error.errors]
        raise InvalidDecision(f"{'.'.join(map(str, where))}: {error}", errors=errors) from None


def _json(values: object) -> JsonValue:
    try:
        approvals.canonical({"value": values})
    except ValueError as error:
        raise invalid(("values",), str(error)) from None
    return values  # type: ignore[return-value]  # canonical() takes nothing but JSON


def invalid(loc: Loc, message: str) -> InvalidDecision:
    where = ".".join(str(part) for part in loc)
    return InvalidDecision(
        f"{where}: {message}", errors=[{"loc": list(loc), "msg": message, "type": "invalid"}]
    )
