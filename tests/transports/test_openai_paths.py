"""Clients of OpenAI's interface that ask where nothing is are told what to do, in their form (NET-1e)."""

import asyncio

import pytest
from starlette.routing import Match, Route

from session_runtime.transports.http.completions_errors import is_openai
from session_runtime.transports.http.openai_paths import way_out
from session_runtime.transports.http.server import build_app
from tests.transports.stub import LIMITS, StubDoor, bearer, calling, keyring_of

BASE = "let the client's base_url end with the port and /v1, as in http://127.0.0.1:8040/v1"
ALONE = "of OpenAI's interface there are POST /v1/chat/completions and GET /v1/models alone"


@pytest.mark.requirement("NET-1e")
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/v1/responses", ALONE),
        ("/v1/responses/resp_1", ALONE),
        ("/v1/completions", ALONE),
        ("/v1/embeddings", ALONE),
        ("/v1/chat/completions/c1", ALONE),
        ("/embeddings", ALONE),
        ("/chat/completions", BASE),
        ("/models", BASE),
        ("/models/a/b", BASE),
        ("/v1/v1/chat/completions", BASE),
        ("/v1/chat/completions/chat/completions", BASE),
    ],
)
async def test_a_client_that_asks_where_nothing_is_reads_the_way_out(path: str, told: str) -> None:
    message = f"nothing is at {path!r}: {told}"
    async with calling(StubDoor(keyring=keyring_of(bot={}))) as client:
        answer = await client.post(path, json={}, headers=bearer("bot"))
    assert answer.status_code == 404
    assert answer.json() == {
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "param": None,
            "code": "request.not_found",
            "session_runtime": {
                "code": "request.not_found",
                "message": message,
                "retryable": False,
            },
        }
    }


@pytest.mark.requirement("NET-2b")
async def test_without_a_key_nothing_is_told_there_either() -> None:
    async with calling(StubDoor(keyring=keyring_of(bot={}))) as client:
        answer = await client.post("/v1/responses", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("name", ["models", "responses", "chat", "files"])
def test_no_path_of_ours_is_taken_for_one_where_nothing_is(name: str) -> None:
    routes = [
        route
        for route in build_app(StubDoor(), LIMITS, asyncio.Event()).routes
        if isinstance(route, Route)
    ]
    for route in routes:
        path = route.path.replace("{name}", name).replace("{id}", name).partition("{")[0]
        assert is_openai(path) or way_out(path) is None, path
    for path in ("/chat/completions", "/v1/responses", "/v1/v1/models", "/v1/chat/completions/x"):
        scope = {"type": "http", "method": "GET", "path": path, "headers": []}
        assert all(route.matches(scope)[0] is Match.NONE for route in routes)
