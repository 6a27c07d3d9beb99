"""Clients that send what they should not: they are answered, and the next one is served."""

import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from session_runtime.transports.http.mcp import MOST_BODY_BYTES, MOST_VALUES
from session_runtime.transports.mcp.callers import Caller
from tests.transports.mcp.served import ON, Served, listed, serving, tools
from tests.transports.mcp.test_sessions import HELLO

MODERN = {"mcp-protocol-version": "2026-07-28"}
JSON = {"content-type": "application/json"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {**(params or {}), "_meta": META},
    }


async def is_well(served: Served) -> bool:
    """Whether a client is still served as if nothing had happened."""
    async with served.client() as client:
        return bool(await listed(client))


BODIES = {
    "nothing": b"",
    "not JSON": b"{",
    "not UTF-8": b'{"jsonrpc": "\xff"}',
    "deep": b"[" * 100_000,
    "a batch": json.dumps([request("tools/list")] * 3).encode(),
    "no message": b'{"a": 1}',
    "a number": b"7",
    "a huge number": b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "method": "ping"}',
    "an id of no kind": b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
    "an answer": b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
}


@pytest.mark.requirement("NET-5a")
async def test_bodies_that_are_no_requests_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.bare(JSON) as client:
        for name, body in BODIES.items():
            for headers in ({}, MODERN):
                answer = await client.post("/mcp", content=body, headers=headers)
                assert 400 <= answer.status_code < 500, name
        assert await is_well(served)


@pytest.mark.requirement("NET-5a")
async def test_a_message_of_too_many_values_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.bare(JSON) as client:
        many = request("tools/call", {"name": "mail.list", "arguments": {"a": [1] * MOST_VALUES}})
        answer = await client.post("/mcp", json=many, headers=MODERN)
    assert answer.status_code == 413
    assert "more than 50000 values" in answer.text


@pytest.mark.requirement("NET-5a")
async def test_a_body_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.bare(JSON) as client:
        large = request(
            "tools/call", {"name": "mail.list", "arguments": {"a": "x" * MOST_BODY_BYTES}}
        )
        for headers in ({}, MODERN):
            answer = await client.post("/mcp", json=large, headers=headers)
            assert answer.status_code == 413
            assert "a message of MCP has more than 1048576 bytes" in answer.text
        assert await is_well(served)


@pytest.mark.requirement("NET-5a")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/json; charset=latin-1"}, 415),
        ({"accept": "text/html"}, 406),
    ],
)
async def test_what_is_not_declared_as_it_should_be_is_refused(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.bare(JSON) as client:
        for era, message in (({}, HELLO), (MODERN, request("tools/list"))):
            body = json.dumps(message).encode()
            answer = await client.post("/mcp", content=body, headers={**headers, **era})
            assert answer.status_code == status


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS"])
async def test_other_methods_of_http_are_refused(tmp_path: Path, method: str) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.bare() as client:
        assert (await client.request(method, "/mcp")).status_code == 405


@pytest.mark.parametrize(
    "method",
    [
        "resources/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "tasks/list",
        "x",
        "",
    ],
)
async def test_methods_that_are_not_offered_are_not_found(tmp_path: Path, method: str) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.bare(JSON) as client:
        headers = {**MODERN, "mcp-method": method}
        answer = await client.post("/mcp", json=request(method), headers=headers)
        assert 400 <= answer.status_code < 500
        assert "error" in answer.json()
        assert await is_well(served)


async def test_an_unknown_version_is_told_which_are_known(tmp_path: Path) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.bare(JSON) as client:
        wanted = "2099-01-01"
        body = request("tools/list")
        body["params"]["_meta"] = {**META, "io.modelcontextprotocol/protocolVersion": wanted}
        headers = {"mcp-protocol-version": wanted, "mcp-method": "tools/list"}
        answer = await client.post("/mcp", json=body, headers=headers)
    assert answer.status_code == 400
    assert "2026-07-28" in answer.text


@pytest.mark.requirement("SEC-3")
async def test_a_fault_of_ours_tells_a_client_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served:
        for mode in ("legacy", "2026-07-28"):
            async with served.client(mode) as client:
                with monkeypatch.context() as broken:
                    broken.setattr(served.runtime.callers, "run", _fail)
                    result = await client.call_tool("mail.list", {})
                assert result.is_error
                assert "secret" not in str(result)


def _fail(caller: Caller, name: str, call: Coroutine[object, object, object]) -> None:
    call.close()
    raise RuntimeError("a secret")
