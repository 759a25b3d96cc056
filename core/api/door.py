"""What every call passes: its request id, the errors as problems, the key."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Mapping

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from pydantic import SecretStr

from core.api.metrics import Metrics
from core.api.problems import Internal, MethodNotAllowed, NoRoute, Unauthorized, problem_response, status_of
from core.errors import AskgateError
from core.ids import new_token
from core.policy import Key

log = structlog.get_logger(__name__)
REQUEST_ID_HEADER = "X-Request-Id"
CALLER = web.RequestKey("caller", Key)
_REQUEST_ID = web.RequestKey("request_id", str)
_SENT_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
GONE = 499
"""What the log and the metrics say of a caller that hung up: no status was sent."""


def observed(metrics: Metrics) -> Middleware:
    """Gives each call an id, and writes down how it went."""

    @web.middleware
    async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
        sent = request.headers.get(REQUEST_ID_HEADER, "")
        request_id = sent if _SENT_ID.fullmatch(sent) else new_token()
        request[_REQUEST_ID] = request_id
        began, status = time.perf_counter(), GONE
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                response = await handler(request)
                status = response.status
            finally:
                resource = request.match_info.route.resource
                route = resource.canonical if resource else "none"
                seconds = time.perf_counter() - began
                metrics.requests.labels(request.method if resource else "none", route, str(status)).observe(
                    seconds
                )
                log.info(
                    "api.called",
                    method=request.method,
                    route=route,
                    status=status,
                    ms=round(seconds * 1000, 1),
                    key=request[CALLER].key if CALLER in request else None,
                )
        return response

    return observe


async def tell_request_id(request: web.Request, response: web.StreamResponse) -> None:
    """A signal before an answer's headers go out."""
    if _REQUEST_ID in request:
        response.headers[REQUEST_ID_HEADER] = request[_REQUEST_ID]


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns what is raised into a problem; what nobody foresaw tells nothing but its request id."""
    try:
        return await handler(request)
    except AskgateError as error:
        if status_of(error) is None:
            log.exception("api.broken")
            return problem_response(Internal(), request[_REQUEST_ID])
        return problem_response(error, request[_REQUEST_ID])
    except web.HTTPNotFound:
        return problem_response(NoRoute(), request[_REQUEST_ID])
    except web.HTTPMethodNotAllowed as error:
        response = problem_response(MethodNotAllowed(), request[_REQUEST_ID])
        response.headers["Allow"] = error.headers["Allow"]
        return response
    except Exception:
        log.exception("api.broken")
        return problem_response(Internal(), request[_REQUEST_ID])


def keyed(keys: Mapping[str, SecretStr], *, open_paths: frozenset[str]) -> Middleware:
    """Lets in who has the secret of a key; ``open_paths`` are the routes that need none."""
    digests = {Key(key=name): _digest(secret.get_secret_value()) for name, secret in keys.items()}

    @web.middleware
    async def check_key(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        if resource is None or resource.canonical not in open_paths:
            request[CALLER] = _caller(request, digests)
        return await handler(request)

    return check_key


def _caller(request: web.Request, digests: Mapping[Key, bytes]) -> Key:
    given = request.headers.getall("Authorization", [])
    scheme, _, secret = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    digest = _digest(secret.strip())
    # every key is compared, so the time tells neither which one it was nor how much of it was right
    found = [key for key, known in digests.items() if hmac.compare_digest(digest, known)]
    if scheme.lower() != "bearer" or not found:
        raise Unauthorized
    return found[0]


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
