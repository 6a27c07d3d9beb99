"""The emergency brake over HTTP: asks that run, and tools that are taken away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.testing.replies import Pace, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.transports.http.openapi import OPENAPI
from session_runtime.types import AskResult, ErrorInfo
from tests.support import chat_profile, opened, tool_folder, write_handler
from tests.transports.stub import StubDoor, bearer, calling, keyring_of

NO_PREFETCH = "[skills]\nprefetch_tools = []\n"


@asynccontextmanager
async def braking(folder: Path, profile: str = "") -> AsyncIterator[tuple[Runtime, Any]]:
    """A runtime with two tools, and a client of its HTTP door."""
    for name in ("files.read", "files.write"):
        write_handler(folder / "tools", name)
    config = tool_folder(folder) + "bundled = false\n" + NO_PREFETCH + profile
    async with opened(folder, config) as runtime, calling(runtime) as client:
        yield runtime, client


def fault(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def fits(schema: str, data: object) -> bool:
    root = {"$ref": f"#/components/schemas/{schema}", "components": OPENAPI["components"]}
    return bool(jsonschema_rs.validator_for(root).is_valid(data))


@pytest.mark.requirement("REL-9")
async def test_tools_are_revoked_listed_and_lifted(tmp_path: Path) -> None:
    async with braking(tmp_path) as (runtime, client):
        assert (await client.get("/v1/revocations")).json() == {"revocations": []}
        body = {"pattern": "files.*", "reason": "a leak"}
        made = await client.post("/v1/revocations", json=body)
        kept = {**body, "number": 1, "by": "local", "time": made.json()["time"]}
        tools = ["files.read", "files.write"]
        assert (made.status_code, made.json()) == (201, {**kept, "tools": tools, "warnings": []})
        assert fits("Revocation", made.json())
        assert runtime.tools(Identity()) == []
        assert (await client.get("/v1/revocations")).json() == {"revocations": [kept]}
        assert (await client.get("/v1/status")).json()["revocations"] == [kept]
        again = await client.post("/v1/revocations", json={"pattern": "files.*"})
        assert (again.status_code, again.json()["number"]) == (200, 1)
        lifted = await client.delete("/v1/revocations/1")
        assert (lifted.status_code, lifted.json()) == (200, kept)
        assert [tool["name"] for tool in runtime.tools(Identity())] == tools
        assert fault(await client.delete("/v1/revocations/1")) == (
            404,
            "request.unknown_revocation",
        )


async def test_a_pattern_without_a_tool_is_kept_with_a_warning(tmp_path: Path) -> None:
    async with braking(tmp_path) as (runtime, client):
        made = (await client.post("/v1/revocations", json={"pattern": "files.raed"})).json()
        assert made["tools"] == []
        assert made["warnings"] == [
            "'files.raed' is no tool's name now: it takes away what is added later; "
            "did you mean 'files.read'?"
        ]
        assert [each.pattern for each in runtime.brake.list()] == ["files.raed"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "pattern: is missing"),
        ({"pattern": " "}, "pattern: is blank"),
        ({"pattern": 7}, "pattern: must be text, not 7"),
        ({"pattern": "a b"}, "holds a character that no name of a tool has"),
        ({"pattern": "a", "reason": ["r"]}, "reason: must be text, not a list of 1"),
        ({"pattern": "a", "reason": "r" * 501}, "reason: has 501 characters"),
        ({"patern": "a"}, "unknown field \"patern\"; did you mean 'pattern'?"),
        (["a"], "the request: must be an object, not a list of 1"),
    ],
)
async def test_a_wrong_revocation_is_refused_and_revokes_nothing(
    body: object, problem: str
) -> None:
    door = StubDoor()
    async with calling(door) as client:
        response = await client.post("/v1/revocations", json=body)
    assert fault(response) == (400, "request.invalid")
    assert problem in response.json()["error"]["message"]
    assert door.brake.list() == ()


@pytest.mark.parametrize("number", ["0", "x", "-1", "9" * 5_000, "１"])
async def test_what_is_no_number_of_a_revocation_is_not_found(number: str) -> None:
    async with calling() as client:
        response = await client.delete(f"/v1/revocations/{number}")
    assert fault(response) == (404, "request.unknown_revocation")


async def test_what_cannot_be_kept_is_told_and_in_force(tmp_path: Path) -> None:
    async with braking(tmp_path) as (runtime, client):
        (tmp_path / ".session-runtime").mkdir()
        (tmp_path / ".session-runtime" / "revocations.json").write_text("somebody's")
        response = await client.post("/v1/revocations", json={"pattern": "files.read"})
        assert fault(response) == (500, "revocations.not_kept")
        assert response.json()["error"]["retryable"] is True
        assert [tool["name"] for tool in runtime.tools(Identity())] == ["files.write"]
        assert fault(await client.delete("/v1/revocations/1")) == (500, "revocations.not_kept")


@pytest.mark.requirement("REL-9")
async def test_asks_are_listed_shown_and_ended(tmp_path: Path) -> None:
    silent = reply_text("x", pace=Pace(gate=asyncio.Event()))
    async with (
        Upstream([silent, silent, silent]) as upstream,
        braking(tmp_path, chat_profile(upstream.base_url)) as (runtime, client),
    ):
        asking = [asyncio.create_task(runtime.ask(AskRequest(str(n)))) for n in range(3)]
        await upstream.received(3)
        asks = (await client.get("/v1/asks")).json()["asks"]
        assert len(asks) == 3
        assert all(fits("RunningAsk", ask) for ask in asks)
        ids = [ask["ask_id"] for ask in asks]
        shown = (await client.get(f"/v1/asks/{ids[0]}")).json()
        assert {**shown, "age_s": 0} == {**asks[0], "age_s": 0}
        told = await client.delete(f"/v1/asks/{ids[0]}?reason=%E5%A4%AA%E6%85%A2")
        assert (told.status_code, told.json()) == (200, {"cancelled": 1})
        assert (await client.delete("/v1/asks/all")).json() == {"cancelled": 2}
        results: list[AskResult] = await asyncio.gather(*asking)
        assert [result.error for result in results] == [
            ErrorInfo("cancelled.operator", "太慢"),
            *[ErrorInfo("cancelled.operator", "an operator ended this ask")] * 2,
        ]
        assert (await client.get("/v1/asks")).json() == {"asks": []}
        assert (await client.delete("/v1/asks/all")).json() == {"cancelled": 0}
        for method in ("GET", "DELETE"):
            gone = await client.request(method, f"/v1/asks/{ids[0]}")
            assert fault(gone) == (404, "request.unknown_ask")


@pytest.mark.parametrize(
    "query", ["resaon=x", "reason=", "reason=a&reason=b", "reason=" + "r" * 501]
)
async def test_a_wrong_query_ends_nothing(query: str) -> None:
    async with calling() as client:
        response = await client.delete(f"/v1/asks/all?{query}")
    assert fault(response) == (400, "request.invalid")


@pytest.mark.requirement("REL-9")
async def test_only_an_admin_revokes_and_is_named(tmp_path: Path) -> None:
    door = StubDoor(keyring=keyring_of(bot={}, boss={"roles": ("admin",)}))
    body = {"pattern": "a.*"}
    async with calling(door) as client:
        refused = await client.post("/v1/revocations", json=body, headers=bearer("bot"))
        assert fault(refused) == (403, "auth.admin_needed")
        assert door.brake.list() == ()
        made = await client.post("/v1/revocations", json=body, headers=bearer("boss"))
    assert made.json()["by"] == "boss"
