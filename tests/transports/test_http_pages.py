import asyncio

import jsonschema_rs
import pytest
from starlette.routing import Route

from session_runtime.transports.http.openapi import OPENAPI
from session_runtime.transports.http.server import build_app
from session_runtime.types import AskResult, ErrorInfo, Identity
from session_runtime.wire import result_to_json
from tests.transports.stub import LIMITS, StubDoor, StubLive, calling


@pytest.mark.requirement("NET-1a")
async def test_the_pages_answer() -> None:
    async with calling() as client:
        pages = {
            path: (await client.get(path)).json()
            for path in ("/v1/tools", "/v1/status", "/healthz", "/readyz", "/openapi.json")
        }
    assert pages == {
        "/v1/tools": {"tools": [{"name": "a.b", "invokable": False}]},
        "/v1/status": {"state": "ready"},
        "/healthz": {"status": "ok"},
        "/readyz": {"status": "ready"},
        "/openapi.json": OPENAPI,
    }


@pytest.mark.requirement("INT-1c")
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_without_metrics_nothing_is_at_their_path(method: str) -> None:
    door = StubDoor()
    door.live = StubLive(metrics={"enabled": False})
    async with calling(door) as client:
        there, nowhere = [await client.request(method, path) for path in ("/metrics", "/nowhere")]
    async with calling() as client:
        assert (await client.get("/metrics")).text == "up 1\n"
    assert there.status_code == nowhere.status_code == 404
    assert there.text == nowhere.text.replace("/nowhere", "/metrics")


async def test_readiness_is_503_with_the_reason() -> None:
    door = StubDoor()
    door.readiness = (False, "draining")
    async with calling(door) as client:
        response = await client.get("/readyz")
        alive = await client.get("/healthz")
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert response.json()["error"]["message"] == "draining"
    assert alive.status_code == 200


@pytest.mark.requirement("NET-1a")
@pytest.mark.parametrize(
    ("query", "identity"),
    [
        ("", None),
        ("user=u", Identity("u")),
        ("role=a&role=b", Identity(roles=frozenset({"a", "b"}))),
        (
            "user=%E5%BC%A0&role=a&channel=c&group=g",
            Identity("张", frozenset({"a"}), "c", "g"),
        ),
    ],
)
async def test_tools_are_shown_as_the_stated_identity_sees_them(
    query: str, identity: Identity | None
) -> None:
    door = StubDoor()
    async with calling(door) as client:
        response = await client.get(f"/v1/tools?{query}")
    assert response.status_code == 200
    assert door.identities == [identity]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("roles=a", "unknown query parameter 'roles'; did you mean 'role'?"),
        ("x=a", "unknown query parameter 'x'; use user, role, channel, group"),
        ("user=", "the query parameter 'user' is blank"),
        ("user=a&user=b", "the query parameter 'user' is given twice"),
    ],
)
async def test_a_wrong_query_is_refused(query: str, problem: str) -> None:
    async with calling() as client:
        response = await client.get(f"/v1/tools?{query}")
    assert response.status_code == 400
    assert problem in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/nowhere", 404, "nothing is at '/nowhere'; see /openapi.json"),
        ("GET", "/v1/tools/", 404, "nothing is at '/v1/tools/'; see /openapi.json"),
        ("POST", "//evil.example/v1/ask", 404, "nothing is at '//evil.example/v1/ask'"),
        ("GET", "/v1/ask", 405, "GET is not for '/v1/ask'; use POST"),
        ("OPTIONS", "/v1/ask", 405, "OPTIONS is not for '/v1/ask'; use POST"),
        ("DELETE", "/v1/tools", 405, "DELETE is not for '/v1/tools'; use"),
    ],
)
async def test_wrong_paths_and_methods_are_answered_in_json(
    method: str, path: str, status: int, message: str
) -> None:
    async with calling() as client:
        url = f"http://localhost{path}"
        response = await client.request(method, url)
    assert response.status_code == status
    assert message in response.json()["error"]["message"]


async def test_the_description_names_the_routes_that_exist() -> None:
    app = build_app(StubDoor(), LIMITS, asyncio.Event())
    real = {
        (route.path.replace(":path}", "}"), method.lower())
        for route in app.routes
        if isinstance(route, Route) and route.path != "/console/"  # leads to /console
        for method in (route.methods or set()) - {"HEAD"}
    }
    described = {(path, method) for path, item in OPENAPI["paths"].items() for method in item}
    assert described == real


def test_a_path_is_one_route_so_that_allow_names_all_of_its_methods() -> None:
    routes = build_app(StubDoor(), LIMITS, asyncio.Event()).routes
    paths = [route.path for route in routes if isinstance(route, Route)]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("AskRequest", {"messages": [{"role": "user", "content": "a", "x": 1}], "silent": True}),
        ("AskResult", result_to_json(AskResult("a", "failed", error=ErrorInfo("c", "m", True, 1)))),
    ],
)
def test_the_described_schemas_fit_what_is_sent(schema: str, data: object) -> None:
    root = {"$ref": f"#/components/schemas/{schema}", "components": OPENAPI["components"]}
    assert [e.message for e in jsonschema_rs.validator_for(root).iter_errors(data)] == []
