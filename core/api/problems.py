"""Errors as problem details (RFC 9457): one table from an error's class to its status, one form of the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from core import errors
from core.api.views import ResultsView, RunView, dumped
from core.errors import AskgateError
from core.strictjson import JsonError, Path, at

TYPE = "/problems/"
"""A problem's type is this and the error's slug, relative to the server."""
MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1
MAX_ERRORS = 100


class Malformed(AskgateError):
    """The request cannot be read."""

    slug = "malformed"


class Unauthorized(AskgateError):
    """Every call needs `Authorization: Bearer <secret>`, with the secret of one of ASKGATE_API_KEYS."""

    slug = "unauthorized"


class NoRoute(AskgateError):
    """There is no such route; /api/v1/openapi.json lists them all."""

    slug = "not-found"


class MethodNotAllowed(AskgateError):
    """This route does not take this method."""

    slug = "method-not-allowed"


class TooLarge(AskgateError):
    """A request's body may have at most 2 MiB."""

    slug = "too-large"


class UnsupportedMediaType(AskgateError):
    """A request's body is JSON in UTF-8: send `Content-Type: application/json`."""

    slug = "unsupported-media-type"


class Internal(AskgateError):
    """Something broke in askgate. The log has it under this request_id."""

    slug = "internal"


STATUS: Mapping[type[AskgateError], int] = {
    Malformed: 400,
    JsonError: 400,
    Unauthorized: 401,
    errors.NotAllowed: 403,
    errors.NotFound: 404,
    NoRoute: 404,
    MethodNotAllowed: 405,
    errors.AlreadySettled: 409,
    errors.Expired: 409,
    errors.NotWaiting: 409,
    errors.NotFailed: 409,
    errors.LeaseLost: 409,
    errors.IdempotencyKeyReused: 409,
    errors.ArgumentsChanged: 409,
    TooLarge: 413,
    UnsupportedMediaType: 415,
    errors.Invalid: 422,
    Internal: 500,
    errors.StoreUnavailable: 503,
}
"""An error that is not here, nor a class above it, is a bug: 500."""

HEADERS: Mapping[int, Mapping[str, str]] = {
    401: {"WWW-Authenticate": "Bearer"},
    503: {"Retry-After": str(RETRY_AFTER_S)},
}


def status_of(error: AskgateError | type[AskgateError]) -> int | None:
    """The status of an error, or None if nobody was meant to see it."""
    kind = error if isinstance(error, type) else type(error)
    return next((STATUS[base] for base in kind.__mro__ if base in STATUS), None)


def title_of(error: AskgateError | type[AskgateError]) -> str:
    return error.slug.replace("-", " ").replace("_", " ").capitalize()


def problem_response(error: AskgateError, request_id: str) -> web.Response:
    """The answer to a request that ended in this error."""
    status = status_of(error) or 500
    body: dict[str, Any] = {
        "type": TYPE + error.slug,
        "title": title_of(error),
        "status": status,
        "detail": error.detail,
    }
    if error.errors:
        body["errors"] = [dict(item) for item in error.errors[:MAX_ERRORS]]
    body["request_id"] = request_id
    return web.Response(
        status=status,
        body=json.dumps(body | _members(error)).encode(),
        headers={"Content-Type": MEDIA_TYPE, **HEADERS.get(status, {})},
    )


def _members(error: AskgateError) -> dict[str, Any]:
    """What a kind of problem tells besides."""
    match error:
        case errors.CoverageMismatch():
            return {name: error.extra[name] for name in ("missing", "unexpected")}
        case errors.AlreadySettled() | errors.Expired() if "run" in error.extra:
            results = error.extra["run"].results()
            return {
                "run": dumped(RunView.of(error.extra["run"])),
                "results": results and dumped(ResultsView.model_validate(results)),
            }
        case _:
            return {}


def invalid(items: list[dict[str, Any]], kind: type[AskgateError] = errors.Invalid) -> AskgateError:
    """An error for input that breaks rules, with the first one as its detail."""
    loc: Path = tuple(items[0]["loc"])
    more = f" (and {len(items) - 1} more)" if len(items) > 1 else ""
    return kind(f"{at(loc)}: {items[0]['msg']}{more}", errors=items)
