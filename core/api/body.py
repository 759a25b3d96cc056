"""Reading a request: its body under the size limit, strict JSON, the models, the query, the headers."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from core.api.problems import Malformed, TooLarge, UnsupportedMediaType, invalid
from core.api.requests import Query, ResumeBody
from core.errors import Invalid
from core.requests import input_errors
from core.strictjson import strict_json

MAX_BODY = 2 * 1024 * 1024
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_NOT_READ = {"float_parsing", "int_parsing", "finite_number"}

Model = TypeVar("Model", bound=BaseModel)
QueryModel = TypeVar("QueryModel", bound=Query)


async def read_body(request: web.Request, model: type[Model], *, optional: bool = False) -> Model:
    """The body as a model; with ``optional`` no body is an empty object.

    Raises UnsupportedMediaType, TooLarge, Malformed, JsonError, or Invalid with the place of each broken rule.
    """
    if optional and not request.can_read_body:
        return _checked(model, {})
    if request.content_type != "application/json" or (request.charset or "utf-8").lower() != "utf-8":
        raise UnsupportedMediaType
    raw = await _read(request)
    return _checked(model, {} if optional and not raw else strict_json(raw))


async def _read(request: web.Request) -> bytes:
    """All of the body, given up as soon as it is too large; a chunked one says no length before."""
    if (request.content_length or 0) > MAX_BODY:
        raise TooLarge
    raw = bytearray()
    try:
        async for chunk in request.content.iter_any():
            raw += chunk
            if len(raw) > MAX_BODY:
                raise TooLarge
    except web.RequestPayloadError as error:
        raise Malformed("The body does not arrive as its headers say.") from error
    return bytes(raw)


def _checked(model: type[Model], value: Any) -> Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        items = input_errors(error)
        if model is ResumeBody:
            items = [{**item, "loc": _untagged(item["loc"])} for item in items]
        raise invalid(items) from None


def _untagged(loc: list[str | int]) -> list[str | int]:
    """A place in a resume's body without the status by which a call's answer was told apart."""
    return [*loc[:2], *loc[3:]] if loc[:1] == ["calls"] and len(loc) > 3 else loc


def read_query(request: web.Request, model: type[QueryModel]) -> QueryModel:
    """The query parameters as a model. Raises Malformed for what cannot be read, Invalid for what breaks a rule."""
    for name in request.query:
        if len(request.query.getall(name)) > 1:
            raise invalid([{"loc": [name], "msg": "given more than once", "type": "twice"}], Malformed)
    try:
        return model.model_validate(dict(request.query))
    except ValidationError as error:
        items = input_errors(error)
        unread = any(item["type"] in _NOT_READ for item in items)
        raise invalid(items, Malformed if unread else Invalid) from None


def idempotency_key(request: web.Request) -> str | None:
    """The Idempotency-Key header. Raises Malformed."""
    given = request.headers.getall("Idempotency-Key", [])
    if not given:
        return None
    if len(given) > 1 or not _IDEMPOTENCY_KEY.fullmatch(given[0]):
        item = {
            "loc": ["Idempotency-Key"],
            "msg": "wanted one, of 1 to 255 visible ASCII characters",
            "type": "header",
        }
        raise invalid([item], Malformed)
    return given[0]
