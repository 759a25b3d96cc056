"""The OpenAPI document says what the API does. (Every other test of the API checks its answers against it.)"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from core.api import PREFIX, build_api
from core.api.routes import ROUTES
from core.engine import ResumeEngine
from tests.integration.conftest import KEYS, Api

Json = dict[str, Any]
METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture
async def document(api: Api) -> Json:
    response = await api.client.get("/api/v1/openapi.json")
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/json"
    found: Json = await response.json()
    return found


def nodes(value: Any) -> Iterator[Any]:
    yield value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in items:
        yield from nodes(item)


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert method in METHODS
            yield method.upper(), path, operation


async def test_every_reference_leads_to_a_schema_and_every_schema_is_used(document: Json) -> None:
    refs = {node["$ref"] for node in nodes(document) if isinstance(node, dict) and "$ref" in node}
    schemas = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert refs == schemas
    mapped = [
        ref
        for node in nodes(document)
        if isinstance(node, dict) and "discriminator" in node
        for ref in node["discriminator"]["mapping"].values()
    ]
    assert mapped
    assert set(mapped) <= schemas


async def test_every_route_of_the_server_is_in_it_and_nothing_else(
    document: Json, engine: ResumeEngine
) -> None:
    served = {
        (route.method, PREFIX + route.resource.canonical)
        for route in build_api(engine, KEYS).router.routes()
        if route.resource
    }
    assert {(method, path) for method, path, _ in operations(document)} == served


async def test_every_parameter_of_a_path_is_named(document: Json) -> None:
    for _, path, operation in operations(document):
        in_path = [p["name"] for p in operation.get("parameters", []) if p["in"] == "path"]
        assert in_path == re.findall(r"\{(\w+)\}", path)
        assert all(p["required"] for p in operation.get("parameters", []) if p["in"] == "path")
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(ids)) == len(ids)


async def test_the_query_parameters_have_their_bounds(document: Json) -> None:
    parameters = document["paths"]["/api/v1/gates"]["get"]["parameters"]
    by_name = {p["name"]: p["schema"] for p in parameters}
    assert by_name["limit"] == {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}
    assert "pending" in by_name["status"]["enum"]
    assert set(by_name) == {"status", "channel", "host", "user", "q", "cursor", "limit"}


async def test_every_keyed_route_says_401_and_503_and_every_failure_is_a_problem(document: Json) -> None:
    for _, path, operation in operations(document):
        if path.endswith("/openapi.json"):
            assert operation["security"] == []
            continue
        assert {"401", "503"} <= set(operation["responses"])
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"]
                assert response["description"]


async def test_what_makes_a_run_is_in_it(document: Json) -> None:
    create = document["paths"]["/api/v1/runs"]["post"]
    assert [p["name"] for p in create["parameters"]] == ["Idempotency-Key"]
    assert set(create["responses"]) == {"200", "201", "400", "401", "409", "413", "415", "422", "503"}
    body = create["requestBody"]
    assert body["required"]
    name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = document["components"]["schemas"][name]
    assert schema["required"] == ["pending"]
    assert schema["additionalProperties"] is False
    assert "201" in create["responses"]
    assert "Location" in create["responses"]["201"]["headers"]


async def test_it_needs_no_key_and_the_rest_does(api: Api, document: Json) -> None:
    assert document["openapi"].startswith("3.1")
    assert document["security"] == [{"key": []}]
    for route in ROUTES:
        path = route.path.replace("{run_id}", "x").replace("{gate_id}", "x")
        response = await api.client.request(route.method, PREFIX + path)
        assert response.status == 401
