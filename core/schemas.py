"""JSON Schema (2020-12): for the arguments that an approver may edit, and for the answers to custom calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.exceptions import ValidationError as SchemaViolation
from referencing import Registry
from referencing.exceptions import Unresolvable

MAX_ERRORS = 20


class SchemaMismatch(ValueError):
    """The value breaks its schema. ``errors`` are `{"loc", "msg", "type"}` items."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{'.'.join(map(str, e['loc'])) or 'value'}: {e['msg']}" for e in errors))


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError for what is no JSON Schema."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        raise ValueError(f"this is no JSON Schema: at {where or 'its top'}: {error.message[:300]}") from None


def check_against(schema: Mapping[str, Any], value: object) -> None:
    """Raise SchemaMismatch if the value breaks the schema. References outside the schema are never fetched."""
    validator = Draft202012Validator(schema, registry=Registry())
    try:
        found = sorted(validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
    except Unresolvable as error:
        raise SchemaMismatch(
            [_item([], f"the schema refers to what it does not hold: {error}", "schema")]
        ) from None
    if found:
        raise SchemaMismatch([_violation(error) for error in found[:MAX_ERRORS]])


def _violation(error: SchemaViolation) -> dict[str, Any]:
    return _item(list(error.absolute_path), error.message[:300], str(error.validator))


def _item(loc: list[str | int], message: str, kind: str) -> dict[str, Any]:
    return {"loc": loc, "msg": message, "type": kind}
