"""Forms: fields that a person fills in, and the check that what came back fits them.

Fields are given either as a list (looprig's four kinds) or as the JSON schema of an MCP elicitation, which becomes the
same fields. The bounds of the list and the five kinds of error are looprig's; sizes of values are bytes of UTF-8.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)

from core.approvals import loses_digits
from core.errors import Invalid

MAX_FIELDS = 32
MAX_NAME_BYTES = 128
MAX_OPTIONS = 64
MAX_VALUE_BYTES = 4096
MAX_TEXT = 8192

FieldKind = Literal["text", "number", "integer", "confirm", "select", "multi_select"]
ErrorKind = Literal["unknown_field", "missing_required", "type_invalid", "too_long", "option_not_allowed"]
Format = Literal["email", "uri", "date", "date-time"]


class FormError(Invalid):
    """The answers do not fit the form: one item in ``errors`` for each field that is wrong."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _name_size(value: str) -> str:
    if not 1 <= len(value.encode()) <= MAX_NAME_BYTES:
        raise ValueError(f"a field's name has 1 to {MAX_NAME_BYTES} bytes")
    return value


def _value_size(value: str) -> str:
    if not 1 <= len(value.encode()) <= MAX_VALUE_BYTES:
        raise ValueError(f"an option's value has 1 to {MAX_VALUE_BYTES} bytes")
    return value


Text = Annotated[str, StringConstraints(max_length=MAX_TEXT)]


class FieldOption(_Model):
    """One option: ``value`` comes back, ``label`` is shown (the value, if there is none)."""

    value: Annotated[str, AfterValidator(_value_size)]
    label: Text = ""

    @property
    def shown(self) -> str:
        return self.label or self.value


class FormField(_Model):
    """One field. The bounds belong to its kind; those of other kinds are refused."""

    name: Annotated[str, AfterValidator(_name_size)]
    kind: FieldKind
    label: Text = ""
    description: Text = ""
    required: bool = False
    options: tuple[FieldOption, ...] = Field((), max_length=MAX_OPTIONS)
    default: JsonValue = None
    format: Format | None = None
    min_length: int | None = Field(None, ge=0)
    max_length: int | None = Field(None, ge=1)
    minimum: float | None = Field(None, allow_inf_nan=False)
    maximum: float | None = Field(None, allow_inf_nan=False)
    min_items: int | None = Field(None, ge=0)
    max_items: int | None = Field(None, ge=1)

    @property
    def shown(self) -> str:
        return self.label or self.name

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        choice = self.kind in ("select", "multi_select")
        if choice != bool(self.options):
            raise ValueError(
                f"a {self.kind} field wants 1 to {MAX_OPTIONS} options"
                if choice
                else f"a {self.kind} has no options"
            )
        values = [option.value for option in self.options]
        if len(set(values)) != len(values):
            raise ValueError("option values are unique in a field")
        for name, kinds in _BOUNDS.items():
            if getattr(self, name) is not None and self.kind not in kinds:
                raise ValueError(f"{name} does not belong to a {self.kind} field")
        for least, most in _PAIRS:
            low, high = getattr(self, least), getattr(self, most)
            if low is not None and high is not None and low > high:
                raise ValueError(f"{least} is more than {most}: nothing fits")
        if (self.min_length or 0) > MAX_VALUE_BYTES:
            raise ValueError(f"min_length is more than the {MAX_VALUE_BYTES} bytes that a value may have")
        if (self.min_items or 0) > max(len(self.options), 1):
            raise ValueError("min_items is more than there are options")
        if self.default is not None and (problem := _CHECKS[self.kind](self, self.default)):
            raise ValueError(f"the default does not fit the field: {problem[1]}")
        return self


_BOUNDS: dict[str, tuple[FieldKind, ...]] = {
    "format": ("text",),
    "min_length": ("text",),
    "max_length": ("text",),
    "minimum": ("number", "integer"),
    "maximum": ("number", "integer"),
    "min_items": ("multi_select",),
    "max_items": ("multi_select",),
}
_PAIRS = (("min_length", "max_length"), ("minimum", "maximum"), ("min_items", "max_items"))


# checking answers: each check gives the kind of error and a sentence, or None

Problem = tuple[ErrorKind, str] | None


def check_form(fields: tuple[FormField, ...], values: object) -> dict[str, JsonValue]:
    """The answers in their normal form: null is absent, and only what was given is there.

    Raises FormError with one error for each field that is wrong, so that each can be shown at its field.
    """
    if not isinstance(values, Mapping):
        raise FormError(
            "wanted an object of values by field name",
            errors=[{"loc": [], "msg": "wanted an object of values by field name", "type": "type_invalid"}],
        )
    known = {field.name: field for field in fields}
    errors = [_error(name, "unknown_field", "there is no such field") for name in values if name not in known]
    found: dict[str, JsonValue] = {}
    for field in fields:
        value = values.get(field.name)
        if problem := _missing(field, value) if _absent(field, value) else _CHECKS[field.kind](field, value):
            errors.append(_error(field.name, *problem))
        elif value is not None:
            found[field.name] = list(value) if field.kind == "multi_select" else value
    if errors:
        raise FormError("; ".join(f"{e['loc'][0]}: {e['msg']}" for e in errors), errors=errors)
    return found


def _error(name: object, kind: ErrorKind, message: str) -> dict[str, Any]:
    return {"loc": [str(name)], "msg": message, "type": kind}


def _absent(field: FormField, value: object) -> bool:
    """Null is absent everywhere; an empty text or list is so where the field is required."""
    return value is None or (field.required and value in ("", []))


def _missing(field: FormField, _value: object) -> Problem:
    return ("missing_required", "this is required") if field.required else None


def _text(field: FormField, value: object) -> Problem:
    if not isinstance(value, str):
        return "type_invalid", "wanted text"
    if len(value.encode("utf-8", "replace")) > MAX_VALUE_BYTES:
        return "too_long", f"wanted at most {MAX_VALUE_BYTES} bytes"
    if field.max_length is not None and len(value) > field.max_length:
        return "too_long", f"wanted at most {field.max_length} characters"
    if value and field.min_length is not None and len(value) < field.min_length:
        return "type_invalid", f"wanted at least {field.min_length} characters"
    if value and field.format and not _FORMATS[field.format](value):
        return "type_invalid", f"wanted {_FORMAT_WORDS[field.format]}"
    return None


def _number(field: FormField, value: object) -> Problem:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "type_invalid", "wanted a number"
    if isinstance(value, float) and not math.isfinite(value):
        return "type_invalid", "wanted a number"
    if field.kind == "integer" and isinstance(value, float) and not value.is_integer():
        return "type_invalid", "wanted a whole number"
    if loses_digits(value):
        return "type_invalid", "wanted a number within ±(2^53-1)"
    if field.minimum is not None and value < field.minimum:
        return "type_invalid", f"wanted at least {field.minimum:g}"
    if field.maximum is not None and value > field.maximum:
        return "type_invalid", f"wanted at most {field.maximum:g}"
    return None


def _confirm(_field: FormField, value: object) -> Problem:
    return None if isinstance(value, bool) else ("type_invalid", "wanted yes or no")


def _select(field: FormField, value: object) -> Problem:
    if not isinstance(value, str):
        return "type_invalid", "wanted one of the options"
    if value not in [option.value for option in field.options]:
        return "option_not_allowed", "this is not one of the options"
    return None


def _multi_select(field: FormField, value: object) -> Problem:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return "type_invalid", "wanted a list of options"
    if len(set(value)) != len(value):
        return "type_invalid", "wanted each option once"
    if not set(value) <= {option.value for option in field.options}:
        return "option_not_allowed", "one of these is not among the options"
    if field.max_items is not None and len(value) > field.max_items:
        return "too_long", f"wanted at most {field.max_items}"
    if field.min_items is not None and len(value) < field.min_items:
        return "missing_required", f"wanted at least {field.min_items}"
    return None


_CHECKS: dict[FieldKind, Callable[[FormField, Any], Problem]] = {
    "text": _text,
    "number": _number,
    "integer": _number,
    "confirm": _confirm,
    "select": _select,
    "multi_select": _multi_select,
}


def _is_email(value: str) -> bool:
    return re.fullmatch(r"[^\s@]+@[^\s@]+\.[^\s@]+", value) is not None


def _is_uri(value: str) -> bool:
    try:
        url = urlsplit(value)
    except ValueError:
        return False
    return bool(url.scheme and (url.netloc or url.path)) and not any(
        char.isspace() or not char.isprintable() for char in value
    )


# RFC 3339, which JSON Schema means by these names; Python also takes ISO 8601's weeks and shortened forms
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(
    rf"{_DATE.pattern}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]+)?(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})"
)


def _is_date(value: str) -> bool:
    return bool(_DATE.fullmatch(value)) and _is_moment(f"{value}T00:00:00Z")


def _is_date_time(value: str) -> bool:
    return _is_moment(value.upper())


def _is_moment(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return bool(_DATE_TIME.fullmatch(value))


_FORMATS: dict[Format, Callable[[str], bool]] = {
    "email": _is_email,
    "uri": _is_uri,
    "date": _is_date,
    "date-time": _is_date_time,
}
_FORMAT_WORDS: dict[Format, str] = {
    "email": "an e-mail address",
    "uri": "an address such as https://example.com",
    "date": "a date such as 2026-01-31",
    "date-time": "a moment such as 2026-01-31T10:00:00Z",
}


# a form as the JSON schema of an MCP elicitation

_FORMATS_KNOWN = ("email", "uri", "date", "date-time")
_KINDS: dict[str, FieldKind] = {"number": "number", "integer": "integer", "boolean": "confirm"}


def schema_fields(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields of an MCP `requestedSchema`: a flat object of text, numbers, booleans and enums.

    Enums come as `enum` with `enumNames`, as `oneOf` of `const` and `title`, and as arrays of either. Without
    properties it asks for a yes alone. Raises ValueError for what an elicitation cannot be.
    """
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping):
        raise ValueError('a form\'s schema is {"type": "object", "properties": {…}}')
    if len(properties) > MAX_FIELDS:
        raise ValueError(f"a form has at most {MAX_FIELDS} fields")
    required = _list(schema, "required")
    if unknown := [name for name in required if not isinstance(name, str) or name not in properties]:
        raise ValueError(f"required names {unknown[0]!r}, which is no property")
    return tuple(_schema_field(name, member, name in required) for name, member in properties.items())


def _schema_field(name: str, member: object, required: bool) -> FormField:
    if not isinstance(member, Mapping):
        raise ValueError(f"the property {name!r} is no object")
    given: dict[str, Any] = {
        "name": name,
        "label": member.get("title", ""),
        "description": member.get("description", ""),
        "required": required,
        "default": member.get("default"),
    }
    kind, items = member.get("type"), member.get("items")
    if kind == "array" and isinstance(items, Mapping):
        given |= {"kind": "multi_select", "options": _schema_options(items, "anyOf")}
        given |= {"min_items": member.get("minItems"), "max_items": member.get("maxItems")}
    elif kind == "string" and ("enum" in member or "oneOf" in member):
        given |= {"kind": "select", "options": _schema_options(member, "oneOf")}
    elif kind == "string":
        form = member.get("format")
        given |= {"kind": "text", "format": form if form in _FORMATS_KNOWN else None}
        given |= {"min_length": member.get("minLength"), "max_length": member.get("maxLength")}
    elif isinstance(kind, str) and kind in _KINDS:
        given["kind"] = _KINDS[kind]
        if kind != "boolean":
            given |= {"minimum": member.get("minimum"), "maximum": member.get("maximum")}
    else:
        raise ValueError(
            f"the property {name!r} has type {kind!r}; wanted string, number, integer, boolean, or an array of an enum"
        )
    return FormField.model_validate(given)


def _schema_options(member: Mapping[str, Any], titled: str) -> list[dict[str, Any]]:
    if named := _list(member, titled):
        if not all(isinstance(option, Mapping) for option in named):
            raise ValueError(f'{titled} lists {{"const", "title"}} objects')
        return [{"value": option.get("const"), "label": option.get("title", "")} for option in named]
    values, names = _list(member, "enum"), _list(member, "enumNames")
    return [
        {"value": value, "label": names[index] if index < len(names) else ""}
        for index, value in enumerate(values)
    ]


def _list(member: Mapping[str, Any], name: str) -> list[Any]:
    """A member that is a list, or is not there."""
    found = member.get(name)
    if found is not None and not isinstance(found, list):
        raise ValueError(f"{name} wants a list")
    return found or []


# the form itself

Control = Literal["accept", "decline", "cancel"]


def check_controls(controls: tuple[Control, ...]) -> None:
    """Refuse controls that nobody could finish with."""
    if "accept" not in controls or len(set(controls)) != len(controls):
        raise ValueError('controls are some of "accept", "decline", "cancel", each once, "accept" among them')


class FormRequest(_Model):
    """A form as its caller gives it: ``fields``, or the ``schema`` of an MCP elicitation. ``controls`` are offered."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)
    title: Text = ""
    body: Text = ""
    fields: tuple[FormField, ...] = Field((), max_length=MAX_FIELDS)
    json_schema: dict[str, JsonValue] | None = Field(None, alias="schema")
    controls: tuple[Control, ...] = Field(("accept", "decline"), min_length=1)

    @model_validator(mode="after")
    def _has_fields(self) -> Self:
        if bool(self.fields) == (self.json_schema is not None):
            raise ValueError('a form wants either "fields" or "schema"')
        names = [field.name for field in self.all_fields]
        if len(set(names)) != len(names):
            raise ValueError("field names are unique in a form")
        check_controls(self.controls)
        return self

    @property
    def all_fields(self) -> tuple[FormField, ...]:
        return self.fields if self.json_schema is None else schema_fields(self.json_schema)
