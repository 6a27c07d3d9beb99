"""The servers of the Model Context Protocol that ship for tests do what they are documented to do."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from session_runtime.mcp.process import Command, start
from session_runtime.mcp.stderr_log import Shown, StderrLog
from session_runtime.mcp.stdio import StdioTransport
from session_runtime.testing.mcp_servers.definitions import DEEP, definitions
from session_runtime.testing.mcp_servers.official import official_server
from session_runtime.testing.mcp_servers.raw import raw_server
from session_runtime.testing.mcp_servers.raw_http import RawHttp
from session_runtime.testing.mcp_servers.script import Script, script_from_json

ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


class Peer:
    """A raw server, spoken to in lines."""

    def __init__(self, lines: asyncio.StreamReader, put: asyncio.StreamWriter, pid: int) -> None:
        self._lines = lines
        self._put = put
        self.pid = pid
        self._id = 0

    def tell(self, method: str, **params: Any) -> None:
        self._write({"method": method, "params": params})

    def send(self, method: str, **params: Any) -> int:
        self._id += 1
        self._write({"id": self._id, "method": method, "params": params})
        return self._id

    async def line(self) -> bytes:
        return await asyncio.wait_for(self._lines.readline(), 10)

    async def message(self) -> Any:
        return json.loads(await self.line())

    async def ask(self, method: str, **params: Any) -> Any:
        self.send(method, **params)
        message = await self.message()
        return message["result"] if "result" in message else message["error"]

    async def call(self, tool: str, **arguments: Any) -> Any:
        return await self.ask("tools/call", name=tool, arguments=arguments)

    def _write(self, message: Mapping[str, Any]) -> None:
        self._put.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


@asynccontextmanager
async def peer(folder: Path, **script: Any) -> AsyncIterator[Peer]:
    child = await start(Command("raw", *raw_server(Script(**script)), folder), os.environ)
    try:
        yield Peer(child.stdout, child.stdin, child.pid)
    finally:
        child.kill()
        await child.wait()


def recorded(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_script_survives_the_command_line() -> None:
    script = Script(tools=("echo",), faults={"echo": ("drop",)}, errors={"ping": -1})
    assert script_from_json(script.to_json()) == Script(
        tools=("echo",),
        faults={"echo": ["drop"]},  # type: ignore[dict-item]
        errors={"ping": -1},
    )


def test_bad_definitions_are_as_bad_as_their_names_say() -> None:
    (deep,) = definitions(["deep_schema"])
    depth, schema = 0, deep["inputSchema"]
    while isinstance(schema, dict):
        depth, schema = depth + 1, next(iter(schema.get("properties", {}).values()), None)
    assert depth == DEEP // 2 + 1  # each level is an object within an object
    assert [tool["name"] for tool in definitions(["duplicate", "many:2"])] == [
        "duplicate",
        "duplicate",
        "tool_0",
        "tool_1",
    ]


async def test_the_handshake_gives_the_revision_that_is_asked_for(tmp_path: Path) -> None:
    async with peer(tmp_path, era="handshake") as raw:
        assert (await raw.ask("server/discover"))["code"] == -32601
        assert await raw.ask("initialize", protocolVersion="2025-06-18") == {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "raw", "version": "1"},
        }


async def test_the_stateless_era_is_discovered(tmp_path: Path) -> None:
    async with peer(tmp_path, era="stateless", ttl_ms=5) as raw:
        assert (await raw.ask("initialize"))["code"] == -32022
        assert await raw.ask("server/discover", _meta=ENVELOPE) == {
            "capabilities": {"tools": {"listChanged": True}},
            "ttlMs": 5,
            "cacheScope": "private",
            "supportedVersions": ["2026-07-28"],
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "raw", "version": "1"}},
        }


async def test_pages_end_repeat_or_never_end(tmp_path: Path) -> None:
    async with peer(tmp_path, tools=("many:3",), page_size=2) as raw:
        first = await raw.ask("tools/list")
        second = await raw.ask("tools/list", cursor=first["nextCursor"])
        assert (len(first["tools"]), len(second["tools"]), "nextCursor" in second) == (2, 1, False)
    async with peer(tmp_path, cursor="same") as raw:
        assert await raw.ask("tools/list") == await raw.ask("tools/list", cursor="x")
    async with peer(tmp_path, tools=("echo",), cursor="endless") as raw:
        page = await raw.ask("tools/list", cursor="7")
        assert (page["tools"][0]["name"], page["nextCursor"]) == ("echo_7", "8")


async def test_methods_fail_are_silent_or_end_the_process(tmp_path: Path) -> None:
    script = {"errors": {"tools/list": -32603}, "silent": ("ping",), "dies_at": ("initialize",)}
    async with peer(tmp_path, **script) as raw:
        assert (await raw.ask("tools/list"))["code"] == -32603
        raw.send("ping")
        assert (await raw.call("echo", text="still there"))["content"][0]["text"] == "still there"
        raw.send("initialize")
        assert await raw.line() == b""


async def test_a_banner_and_chatter_stand_in_front_of_messages(tmp_path: Path) -> None:
    async with peer(tmp_path, banner="v1 \xff", chatter="log\n") as raw:
        raw.send("ping")
        assert await raw.line() == b"v1 \xfflog\n"
        assert (await raw.message())["result"] == {}


async def test_calls_are_cancelled_unless_the_script_ignores_that(tmp_path: Path) -> None:
    for ignores, answered in (((), False), (("cancel",), True)):
        async with peer(tmp_path, tools=("slow", "echo"), ignores=ignores) as raw:
            id_ = raw.send("tools/call", name="slow", arguments={"seconds": 0.3})
            raw.tell("notifications/cancelled", requestId=id_)
            raw.send("tools/call", name="slow", arguments={"seconds": 0.5})
            assert ((await raw.message())["id"] == id_) is answered


async def test_progress_goes_to_who_wants_it(tmp_path: Path) -> None:
    async with peer(tmp_path, tools=("progress",)) as raw:
        arguments = {"times": 1, "every": 0}
        raw.send("tools/call", name="progress", arguments=arguments, _meta={"progressToken": "p"})
        assert (await raw.message())["params"] == {
            "progressToken": "p",
            "progress": 1,
            "total": 1,
            "message": "step 1",
        }
        assert "result" in await raw.message()


async def test_calls_that_took_effect_are_counted_and_faults_befall_them_in_order(
    tmp_path: Path,
) -> None:
    path = tmp_path / "executions"
    faults = {"echo": ("drop", "die_before", "die_after")}
    script = {"executions": str(path), "faults": faults}
    for dies in ("second", "third"):
        async with peer(tmp_path, **script) as raw:
            if dies == "second":
                raw.send("tools/call", name="echo", arguments={"text": "first"}, _meta={"k": "v"})
                await raw.call("add", a=1, b=2)
            raw.send("tools/call", name="echo", arguments={"text": dies})
            assert await raw.line() == b""
    async with peer(tmp_path, **script) as raw:
        assert (await raw.call("echo", text="fourth"))["content"][0]["text"] == "fourth"
    echoes = [each for each in recorded(path) if each["tool"] == "echo"]
    assert echoes == [
        {"tool": "echo", "arguments": {"text": "first"}, "meta": {"k": "v"}},
        {"tool": "echo", "lost": True},
        {"tool": "echo", "arguments": {"text": "third"}, "meta": {}},
        {"tool": "echo", "arguments": {"text": "fourth"}, "meta": {}},
    ]


async def test_the_list_changes_on_a_call_and_on_a_signal(tmp_path: Path) -> None:
    script = {"tools": ("change_list",), "next_tools": ("echo",)}
    for cause in ("call", "signal"):
        async with peer(tmp_path, **script) as raw:
            await raw.ask("ping")
            if cause == "call":
                raw.send("tools/call", name="change_list", arguments={})
            else:
                os.kill(raw.pid, signal.SIGUSR1)
            assert (await raw.message())["method"] == "notifications/tools/list_changed"
            raw.send("tools/list")
            answers = [await raw.message() for _ in range(2 if cause == "call" else 1)]
            lists = [each["result"]["tools"] for each in answers if "tools" in each["result"]]
            assert [tool["name"] for tool in lists[0]] == ["echo"]


async def test_every_message_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "received"
    async with peer(tmp_path, received=str(path)) as raw:
        raw.tell("notifications/initialized")
        await raw.ask("ping")
    assert [each["method"] for each in recorded(path)] == ["notifications/initialized", "ping"]


async def test_the_environment_of_the_process_is_shown(tmp_path: Path) -> None:
    async with peer(tmp_path, tools=("environ",)) as raw:
        shown = json.loads((await raw.call("environ"))["content"][0]["text"])
    assert {"PATH", "HOME"} <= set(shown) <= {"PATH", "HOME", "LANG", "LC_CTYPE"}


@pytest.mark.parametrize("answers", ["events", "json"])
async def test_over_http_a_session_is_forgotten_by_the_next_process(answers: Any) -> None:
    with RawHttp(Script(era="handshake", answers=answers)) as server:
        async with Client(server.url, mode="legacy") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "add"]
            server.kill()
            server.start()
            with pytest.raises(MCPError, match="Session terminated"):
                await client.list_tools()
        async with Client(server.url, mode="legacy") as client:
            assert len((await client.list_tools()).tools) == 2


async def test_over_http_the_stateless_era_needs_no_session() -> None:
    with RawHttp(Script(era="stateless")) as server:
        async with Client(server.url) as client:
            server.kill()
            server.start()
            assert client.protocol_version == "2026-07-28"
            assert (await client.call_tool("echo", {"text": "hi"})).content[0].text == "hi"


async def test_over_http_requests_are_answered_with_a_status_before_they_are_as_usual(
    tmp_path: Path,
) -> None:
    path = tmp_path / "received"
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    script = Script(statuses={"ping": (429, 0)}, sessions=False, received=str(path))
    with RawHttp(script) as server:
        async with httpx2.AsyncClient(headers={"X-Key": "k"}) as client:
            busy = await client.post(server.url, json=ping)
            assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")
            assert (await client.post(server.url, json=ping)).status_code == 200
    assert recorded(path)[0]["_headers"]["X-Key"] == "k"


@pytest.mark.parametrize(
    ("era", "revision"), [("handshake", "2025-11-25"), ("stateless", "2026-07-28")]
)
async def test_the_official_servers_speak_their_era_and_change_their_list(
    tmp_path: Path, era: Any, revision: str
) -> None:
    shown = Shown()
    transport = StdioTransport(
        Command("official", *official_server(era), tmp_path),
        os.environ,
        StderrLog(tmp_path / "x.log", shown),
        shown,
    )
    async with Client(transport) as client:
        assert client.protocol_version == revision
        result = await client.call_tool("add", {"a": 1, "b": 2})
        assert result.structured_content == {"sum": 3}
        await client.call_tool("change_list", {})
        rest = await client.list_tools(cursor="rest")
        assert [tool.name for tool in rest.tools] == ["fail", "change_list", "added"]
