"""The OpenAPI 3.1 document, made from the table of routes and the models."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from core.api.problems import HEADERS, MEDIA_TYPE, status_of
from core.api.requests import Query
from core.api.routes import Route
from core.api.views import CoverageProblem, Problem, SettledProblem, View
from core.errors import AlreadySettled, AskgateError, CoverageMismatch, Expired

Json = dict[str, Any]
_REF = "#/components/schemas/{model}"
_WHAT = {"run_id": "The id of a run, `run_07_…`", "gate_id": "The id of a gate, `gate_07_…_0`"}
_REQUEST_ID = {
    "X-Request-Id": {
        "description": "The id of this call: the one that was sent, or one of askgate's",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
    }
}


def build_openapi(routes: Sequence[Route], *, prefix: str, here: str, version: str) -> Json:
    """The document for these routes, which are served below ``prefix``, and it is itself at ``here``."""
    refs, schemas = _schemas(routes)
    paths: defaultdict[str, Json] = defaultdict(dict)
    for route in routes:
        paths[prefix + route.path][route.method.lower()] = _operation(route, refs)
    paths[prefix + here]["get"] = {
        "operationId": "openapi",
        "summary": "This document",
        "security": [],
        "responses": {
            "200": {
                "description": "OpenAPI 3.1",
                "headers": _REQUEST_ID,
                "content": {"application/json": {"schema": {"type": "object"}}},
            }
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "askgate",
            "version": version,
            "description": "Runs that stop and ask, the people who settle them, and the way back.",
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": dict(paths),
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    }


def _schemas(routes: Iterable[Route]) -> tuple[Mapping[type[BaseModel], Json], Json]:
    """A reference to the schema of each model, and the schemas by name."""
    views: list[type[View]] = [Problem, CoverageProblem, SettledProblem]
    wanted: dict[type[BaseModel], JsonSchemaMode] = {}
    for route in routes:
        wanted |= dict.fromkeys((*route.gives.values(), *views), "serialization")
        if route.body:
            wanted[route.body] = "validation"
    refs, found = models_json_schema(list(wanted.items()), ref_template=_REF)
    return {model: refs[model, mode] for model, mode in wanted.items()}, found["$defs"]


def _operation(route: Route, refs: Mapping[type[BaseModel], Json]) -> Json:
    operation: Json = {
        "operationId": _name(route),
        "summary": route.summary,
        "parameters": _parameters(route),
        "responses": _successes(route, refs) | _failures(route, refs),
    }
    if route.body:
        operation["requestBody"] = {
            "required": not route.body_optional,
            "content": {"application/json": {"schema": refs[route.body]}},
        }
    return operation


def _name(route: Route) -> str:
    return f"{route.handler.__module__.rpartition('.')[2]}_{route.handler.__name__}"


def _parameters(route: Route) -> list[Json]:
    in_path = [
        {"name": n, "in": "path", "required": True, "description": _WHAT[n], "schema": {"type": "string"}}
        for n in re.findall(r"\{(\w+)\}", route.path)
    ]
    in_header: list[Json] = [
        {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}
        for name, text in route.takes_headers.items()
    ]
    return in_path + (_query_parameters(route.query) if route.query else []) + in_header


def _query_parameters(model: type[Query]) -> list[Json]:
    """The fields of a query model; an absent parameter is no null, so the schema has none."""
    found = []
    for name, schema in model.model_json_schema()["properties"].items():
        either = [item for item in schema.get("anyOf", [schema]) if item != {"type": "null"}]
        [kind] = either
        shown = {k: v for k, v in {**kind, "default": schema.get("default")}.items() if v is not None}
        text = shown.pop("description", None) or schema.get("description")
        shown.pop("title", None)
        found.append({"name": name, "in": "query", "schema": shown} | ({"description": text} if text else {}))
    return found


def _successes(route: Route, refs: Mapping[type[BaseModel], Json]) -> Json:
    extra = {
        n: {"description": text, "schema": {"type": "string"}} for n, text in route.gives_headers.items()
    }
    return {
        str(status): {
            "description": (view.__doc__ or view.__name__).strip().partition("\n")[0],
            "headers": _REQUEST_ID | extra,
            "content": {route.media_type: {"schema": refs[view]}},
        }
        for status, view in sorted(route.gives.items())
    }


def _failures(route: Route, refs: Mapping[type[BaseModel], Json]) -> Json:
    by_status: defaultdict[int, list[type[AskgateError]]] = defaultdict(list)
    for error in route.all_failures:
        by_status[status_of(error) or 500].append(error)
    return {str(status): _failure(status, kinds, refs) for status, kinds in sorted(by_status.items())}


def _failure(status: int, kinds: Sequence[type[AskgateError]], refs: Mapping[type[BaseModel], Json]) -> Json:
    models = list(dict.fromkeys(_problem_of(kind) for kind in kinds))
    headers = {
        n: {"description": v, "schema": {"type": "string"}} for n, v in HEADERS.get(status, {}).items()
    }
    return {
        "description": "\n".join(f"- `{kind.slug}`: {kind.__doc__}" for kind in kinds),
        "headers": _REQUEST_ID | headers,
        "content": {
            MEDIA_TYPE: {
                "schema": refs[models[0]] if len(models) == 1 else {"anyOf": [refs[m] for m in models]}
            }
        },
    }


def _problem_of(kind: type[AskgateError]) -> type[Problem]:
    if issubclass(kind, CoverageMismatch):
        return CoverageProblem
    return SettledProblem if issubclass(kind, AlreadySettled | Expired) else Problem
