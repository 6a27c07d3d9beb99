"""A call reaches its server once, tells how far it is, and ends in a result or an error of a class."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from session_runtime.errors import PermanentError, SessionRuntimeError, ToolError, TransientError
from session_runtime.mcp.base import OnProgress
from session_runtime.mcp.calls import call_tool
from session_runtime.mcp.connection import Edges
from session_runtime.mcp.faults import Fault, Kind
from session_runtime.mcp.stderr_log import Shown
from session_runtime.testing.mcp_servers.script import Era, Script
from tests.mcp.peer import META, Json, Kept, Peer, Refusal, command, kept, started, tool

ERAS = pytest.mark.parametrize("stateless", [False, True])


def received(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def nothing_waits(it: Kept) -> None:
    """Neither the connection nor the SDK below remembers a call; a stateless one goes on listening."""
    await it.connection.refresh()
    client = it.connection._client
    assert client is not None
    pending = [id_ for id_ in client._session._dispatcher._pending if isinstance(id_, int)]
    assert (client.waiting, it.connection.health.calls, pending) == (0, 0, [])


async def refused(it: Kept, name: str = "echo", **arguments: Any) -> SessionRuntimeError:
    with pytest.raises(SessionRuntimeError) as caught:
        await it.call(name, **arguments)
    return caught.value


def answering(result: Json, *, stateless: bool = False, **more: Any) -> Peer:
    """A peer whose calls all have this result."""

    async def answer(_: Json) -> Json:
        return result

    return Peer(stateless=stateless, answers={"tools/call": answer}, **more)


def refusing(code: int, message: str = "refused") -> Peer:
    """A peer whose calls all have this error."""

    async def refuse(_: Json) -> Json:
        raise Refusal(code, message)

    return Peer(answers={"tools/call": refuse})


@pytest.mark.requirement("RTE-1")
@ERAS
async def test_a_call_reaches_the_server_as_it_was_made_with_its_key(stateless: bool) -> None:
    peer = Peer(stateless=stateless)
    arguments = {"text": "半\u2028", "nothing": None, "inner": {"nothing": None, "list": [1, None]}}
    async with kept(peer) as it:
        result = await it.connection.call("echo", arguments, "key-7", lambda *_: None)
        message = await peer.got("tools/call")
        params = message["params"]
        meta = {k: v for k, v in params.pop("_meta").items() if not k.startswith(META)}
        assert result == "done"
        assert params == {"name": "echo", "arguments": arguments}
        assert meta == {"session-runtime/call": "key-7", "progressToken": message["id"]}
        await nothing_waits(it)


@pytest.mark.requirement("RTE-10")
@ERAS
async def test_a_result_that_the_sdk_would_refuse_is_given_and_its_tool_not_listed_again(
    stateless: bool,
) -> None:
    result = {"content": [{"type": "hologram"}], "resultType": "complete"}
    peer = answering(result, stateless=stateless)
    peer.tools = [tool("echo", outputSchema={"type": "object", "required": ["sum"]})]
    async with kept(peer) as it:
        before = peer.methods().count("tools/list")
        assert await it.call("echo") == {"kind": "unknown", "type": "hologram"}
        assert await it.call("unlisted") == {"kind": "unknown", "type": "hologram"}
        assert peer.methods().count("tools/list") == before


@pytest.mark.requirement("RTE-7")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_progress_is_told_while_a_call_runs(tmp_path: Path, era: Era) -> None:
    script = Script(era=era, tools=("progress",))
    told: list[tuple[float, float | None, str | None]] = []
    async with started(command(script), tmp_path, Edges()) as it:
        await it.connection.call(
            "progress", {"times": 3}, "key", lambda *progress: told.append(progress)
        )
        assert told == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@pytest.mark.requirement("RTE-7")
async def test_progress_that_is_no_number_is_not_told_and_its_words_are_bounded() -> None:
    peer = Peer()

    async def progressing(message: Json) -> Json:
        token = message["params"]["_meta"]["progressToken"]
        for done, words in ((float("inf"), "a"), (2.0, "b\x1b[2J" * 1_000)):
            params = {"progressToken": token, "progress": done, "message": words}
            await peer.say({"method": "notifications/progress", "params": params})
        return {"content": []}

    peer.answers["tools/call"] = progressing
    told: list[tuple[float, float | None, str | None]] = []
    async with kept(peer) as it:
        await it.connection.call("echo", {}, "key", lambda *progress: told.append(progress))
    [(done, total, words)] = told
    assert (done, total) == (2.0, None)
    assert words is not None
    assert words.startswith(r"b\x1b[2J")
    assert len(words) <= 301


@pytest.mark.requirement("RTE-7")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_cancelling_a_call_tells_the_server_once_and_leaves_nothing_waiting(
    tmp_path: Path, era: Era
) -> None:
    log = tmp_path / "received"
    script = Script(era=era, tools=("forever", "echo"), received=str(log))
    async with started(command(script), tmp_path, Edges()) as it:
        call = asyncio.create_task(it.call("forever"))
        while not any(each.get("method") == "tools/call" for each in received(log)):
            await it.call("echo", text="others run meanwhile")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await it.call("echo", text="still there") == "still there"
        await nothing_waits(it)
    messages = received(log)
    [id_] = [each["id"] for each in messages if each.get("params", {}).get("name") == "forever"]
    cancelled = [
        each["params"]["requestId"]
        for each in messages
        if each.get("method") == "notifications/cancelled"
    ]
    assert cancelled.count(id_) == 1


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (-32602, "text must be a string", "mcp.invalid_arguments"),
        (-32603, "division by zero", "mcp.internal"),
        (-32000, "no idea", "mcp.internal"),
        (0, "odd", "mcp.internal"),
        (-32700, "could not read it", "mcp.bad_result"),
    ],
)
async def test_errors_of_a_server_that_it_is_useless_to_repeat(
    code: int, message: str, expected: str
) -> None:
    async with kept(refusing(code, message)) as it:
        error = await refused(it)
        assert (type(error), error.code) == (PermanentError, expected)
        assert "'srv'" in str(error)
        assert it.connection.health.state == "ready"


NOT_THERE = [
    "Unknown tool: echo",
    "Unknown tool: 'echo'",
    'unknown tool "echo"',
    "No such tool: echo.",
    "Tool echo not found",
    "MCP error -32602: Tool echo not found",
    "tool 'echo' not found: tool not found",
    "Tool not found: echo",
    "Tool `echo` does not exist",
]
MAY_HAVE_RUN = [
    "Error executing tool echo: account 12 not found",
    "Invalid arguments for tool echo: unknown field 'currency'",
    "MCP error -32602: Tool echo: user 17 does not exist",
    "Unknown tool: other",
    "Unknown tool: Echo",
    "Unknown tool: echoes",
    "Unknown tool: echo\nso nothing was sent after the payment",
    "tool not found",
    "Downstream: method not found",
    "Downstream: Unknown tool: echo",
    "the tool echo took the money, but the account is unknown",
]


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("message", NOT_THERE)
@pytest.mark.parametrize("code", [-32601, -32602])
async def test_a_tool_is_not_there_where_all_that_its_server_says_is_that(
    code: int, message: str
) -> None:
    assert (await error_of(Fault("error", message, code=code))).code == "mcp.tool_not_found"


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("message", ["Method not found", "method not found: tools/call"])
async def test_a_call_whose_method_is_not_found_may_have_run_as_its_server_lists_tools(
    message: str,
) -> None:
    peer = refusing(-32601, message)
    async with kept(peer, heartbeat_s=0) as it:
        assert (await refused(it)).code == "mcp.internal"
        await peer.got("tools/list", 2)


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("message", MAY_HAVE_RUN)
@pytest.mark.parametrize(
    ("code", "expected"), [(-32601, "mcp.internal"), (-32602, "mcp.invalid_arguments")]
)
async def test_a_tool_may_have_run_whose_server_says_anything_else_of_something_missing(
    code: int, expected: str, message: str
) -> None:
    assert (await error_of(Fault("error", message, code=code))).code == expected
    words = {"content": [{"type": "text", "text": message}], "isError": True}
    assert type(await error_of(words)) is ToolError


async def test_a_tool_with_letters_that_mean_something_in_patterns_is_named_by_them() -> None:
    fault = Fault("error", "Unknown tool: a.b", code=-32602)
    assert (await error_of(fault, "a.b")).code == "mcp.tool_not_found"
    assert (await error_of(fault, "a?b")).code == "mcp.invalid_arguments"


@pytest.mark.requirement("RTE-8")
async def test_a_server_that_says_itself_that_it_had_no_time_may_have_run_the_call() -> None:
    async with kept(refusing(-32001, "Request timed out")) as it:
        error = await refused(it)
        assert isinstance(error, TransientError)
        assert (error.code, error.may_have_run) == ("mcp.lost", True)


@pytest.mark.requirement("RTE-8")
async def test_a_server_that_dies_during_a_call_is_told_at_once_and_the_call_may_have_run(
    tmp_path: Path,
) -> None:
    edges = Edges(jitter=lambda: 0.01)
    async with started(command(Script(tools=("die", "echo"))), tmp_path, edges) as it:
        error = await refused(it, "die")
        assert isinstance(error, TransientError)
        assert (error.code, error.may_have_run) == ("mcp.lost", True)
        await it.seen.until(lambda: it.connection.health.restarts == 1)
        await it.is_in("ready")
        assert await it.call("echo", text="again") == "again"


@pytest.mark.requirement("RTE-10")
async def test_the_error_of_a_tool_is_its_own_words() -> None:
    words = {"type": "text", "text": "the room is taken"}
    async with kept(answering({"content": [words], "isError": True})) as it:
        with pytest.raises(ToolError, match=r"^the room is taken$"):
            await it.call("echo")


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("message", NOT_THERE)
async def test_an_unknown_tool_that_is_told_as_the_error_of_a_tool_is_not_found(
    message: str,
) -> None:
    words = {"type": "text", "text": message}
    told = await error_of({"content": [words], "isError": True})
    assert (told.code, message in str(told)) == ("mcp.tool_not_found", True)


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({}, "it has no content"),
        ({"resultType": "task", "content": []}, "its type is 'task'"),
        (
            {"resultType": "input_required", "inputRequests": {"a": {}}},
            "it asks for input, and nobody here can give it any",
        ),
    ],
)
async def test_a_call_whose_result_cannot_be_used_has_run(result: Json, why: str) -> None:
    async with kept(answering(result, stateless=True)) as it:
        error = await refused(it)
        assert (type(error), error.code) == (PermanentError, "mcp.bad_result")
        assert f"has run, but its result cannot be used: {why}" in str(error)


async def test_a_server_may_ask_to_be_asked_again_with_its_state() -> None:
    peer = Peer(stateless=True)

    async def in_rounds(message: Json) -> Json:
        if message["params"].get("requestState") == "s1":
            return {"resultType": "complete", "content": [{"type": "text", "text": "at last"}]}
        return {"resultType": "input_required", "requestState": "s1"}

    peer.answers["tools/call"] = in_rounds
    async with kept(peer) as it:
        assert await it.call("echo") == "at last"


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize(
    ("kind", "code", "expected"),
    [
        ("busy", 0, ("mcp.lost", True)),
        ("unreachable", 0, ("mcp.lost", True)),
        ("expired", 0, ("mcp.lost", True)),
        ("late", 0, ("mcp.lost", True)),
        ("unreadable", 0, ("mcp.bad_result", None)),
        ("error", -32601, ("mcp.internal", None)),
        ("error", -32602, ("mcp.internal", None)),
    ],
)
async def test_once_a_server_has_begun_with_a_call_no_fault_says_that_it_did_not_run(
    kind: Kind, code: int, expected: tuple[str, bool | None]
) -> None:
    fault = Fault(kind, "Unknown tool: echo", code=code, retry_after_s=7.0)
    begun = {"resultType": "input_required", "requestState": "s1"}
    with pytest.raises(SessionRuntimeError) as caught:
        await call_tool(Rounds([begun, fault]), "srv", "echo", {}, "k", no_progress, Shown())
    error = caught.value
    may_have_run = error.may_have_run if isinstance(error, TransientError) else None
    assert (error.code, may_have_run) == expected
    assert isinstance(error.__cause__, Fault)
    assert error.__cause__.kind == kind


async def test_a_tool_that_has_begun_may_say_that_it_knows_no_tool() -> None:
    begun = {"resultType": "input_required", "requestState": "s1"}
    words = {"content": [{"type": "text", "text": "Unknown tool: echo"}], "isError": True}
    with pytest.raises(ToolError, match=r"^Unknown tool: echo$"):
        await call_tool(Rounds([begun, words]), "srv", "echo", {}, "k", no_progress, Shown())


async def error_of(step: Json | Fault, tool: str = "echo") -> SessionRuntimeError:
    """What the caller of a tool gets whose server answers with this."""
    with pytest.raises(SessionRuntimeError) as caught:
        await call_tool(Rounds([step]), "srv", tool, {}, "k", no_progress, Shown())
    return caught.value


@dataclass
class Rounds:
    """A server that does one of these after the other, whatever it is asked."""

    steps: list[Json | Fault]

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        key: str,
        on_progress: OnProgress,
        state: str | None,
        trace: object,
    ) -> Json:
        step = self.steps.pop(0)
        if isinstance(step, Fault):
            raise step
        return step


def no_progress(*_: object) -> None:
    """Nobody listens."""


async def test_calls_of_many_run_side_by_side_and_are_counted() -> None:
    peer = Peer()
    gate = asyncio.Event()

    async def answer(message: Json) -> Json:
        await gate.wait()
        return {"content": [{"type": "text", "text": message["params"]["arguments"]["n"]}]}

    peer.answers["tools/call"] = answer
    async with kept(peer) as it:
        calls = [asyncio.create_task(it.call("echo", n=str(n))) for n in range(20)]
        await peer.got("tools/call", 20)
        assert it.connection.health.calls == 20
        gate.set()
        assert await asyncio.gather(*calls) == [str(n) for n in range(20)]
        await nothing_waits(it)


@pytest.mark.requirement("RTE-7")
async def test_a_call_that_goes_on_telling_has_no_time_limit_of_its_own(tmp_path: Path) -> None:
    server = command(Script(tools=("progress",)), idle_timeout_s=0.01, hard_timeout_s=0.02)
    async with started(server, tmp_path, Edges()) as it:
        assert await it.call("progress", times=5, every=0.02) == "done"
