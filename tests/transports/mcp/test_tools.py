"""What a client is told of the tools it may use, and of what they return."""

import base64
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ImageContent, TextContent, ToolAnnotations

from session_runtime.registry.names import RESULTS_READ
from session_runtime.transports.mcp.wire import TOOLS_PER_PAGE
from tests.support import write_handler
from tests.transports.mcp.served import (
    HANDSHAKE,
    NAMES,
    ON,
    SEARCHING,
    STATELESS,
    Mode,
    listed,
    serving,
    text_of,
    tools,
)

ERAS = pytest.mark.parametrize("mode", [HANDSHAKE, STATELESS])
PICTURE = b"\x89PNG\r\n\x1a\n and more"
DRAWS = f"""
from session_runtime.handler import Image

def execute(args, context):
    return Image({PICTURE!r}, "image/png")
"""
SPEAKS = """
def execute(args, context):
    context.emit_message("one moment")
    return "done now"
"""
FAILS = """
from session_runtime.handler import ToolError

def execute(args, context):
    raise ToolError("there is no such song")
"""
LONG = "def execute(args, context):\n    return 'x' * 5000 + 'the end'\n"


@ERAS
async def test_a_client_lists_and_calls_the_tools(tmp_path: Path, mode: Mode) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.client(mode) as client:
        assert await listed(client) == sorted(NAMES)
        result = await client.call_tool("mail.list", {"a": 1})
    assert (text_of(result), result.structured_content, result.is_error) == (
        '{"got":{"a":1}}',
        {"got": {"a": 1}},
        False,
    )


@pytest.mark.requirement("TS-6")
@pytest.mark.requirement("NET-1d")
async def test_what_a_search_finds_is_listed_and_can_be_called(tmp_path: Path) -> None:
    config = tools(tmp_path) + ON + SEARCHING
    told: list[str] = []

    async def hear(message: object) -> None:
        told.append(type(message).__name__)

    async with serving(tmp_path, config) as served, served.client(message_handler=hear) as client:
        before = await listed(client)
        refused = await client.call_tool("mail.list", {})
        found = await client.call_tool("tool_search", {"query": "select:mail.list"})
        after = await listed(client)
        called = await client.call_tool("mail.list", {})
    assert (before, after) == (["tool_search"], ["tool_search", "mail.list"])
    assert refused.is_error
    assert "is not loaded" in text_of(refused)
    assert found.structured_content is not None
    assert found.structured_content["loaded"] == ["mail.list"]
    assert not called.is_error
    assert told == ["ToolListChangedNotification"]


async def test_a_client_reads_at_the_beginning_which_tools_can_be_searched_for(
    tmp_path: Path,
) -> None:
    config = tools(tmp_path) + ON + SEARCHING
    async with serving(tmp_path, config) as served, served.client() as client:
        words = client.instructions or ""
    assert [name for name in NAMES if name in words] == list(NAMES)


@pytest.mark.requirement("NET-1d")
async def test_without_a_session_all_permitted_tools_are_listed_from_the_start(
    tmp_path: Path,
) -> None:
    config = tools(tmp_path) + ON + SEARCHING
    async with serving(tmp_path, config) as served, served.client(STATELESS) as client:
        assert await listed(client) == sorted(NAMES)
        assert not (await client.call_tool("mail.list", {})).is_error


async def test_an_empty_search_is_told_what_it_lacks(tmp_path: Path) -> None:
    config = tools(tmp_path) + ON + SEARCHING
    async with serving(tmp_path, config) as served, served.client() as client:
        empty = await client.call_tool("tool_search", {"query": " "})
        none = await client.call_tool("tool_search", {})
    assert empty.is_error
    assert "tool_search needs a query" in text_of(empty)
    assert none.is_error
    assert "query" in text_of(none)


@ERAS
async def test_many_tools_are_listed_in_pages(tmp_path: Path, mode: Mode) -> None:
    names = [f"a.t{number:03}" for number in range(TOOLS_PER_PAGE + 1)]
    async with (
        serving(tmp_path, tools(tmp_path, *names) + ON) as served,
        served.client(mode) as client,
    ):
        first = await client.list_tools()
        assert (len(first.tools), first.next_cursor) == (TOOLS_PER_PAGE, names[-2])
        assert await listed(client) == names
        with pytest.raises(MCPError, match="list from the start"):
            await client.list_tools(cursor="a.gone")


async def test_hints_say_what_the_tool_says_and_never_leave_the_worst_to_be_guessed(
    tmp_path: Path,
) -> None:
    config = tools(tmp_path, "a.plain")
    for hint in ("destructive", "read_only", "idempotent"):
        write_handler(tmp_path / "tools", f"a.{hint}", runtime={hint: True})
    async with serving(tmp_path, config + ON) as served, served.client() as client:
        hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    def of(read_only: bool, destructive: bool, idempotent: bool) -> ToolAnnotations:
        return ToolAnnotations(
            read_only_hint=read_only, destructive_hint=destructive, idempotent_hint=idempotent
        )

    assert hints == {
        "a.plain": of(False, False, False),
        "a.destructive": of(False, True, False),
        "a.read_only": of(True, False, True),
        "a.idempotent": of(False, False, True),
    }


@ERAS
async def test_a_picture_is_given_as_one(tmp_path: Path, mode: Mode) -> None:
    config = tools(tmp_path, "a.draw", code=DRAWS) + ON
    async with serving(tmp_path, config) as served, served.client(mode) as client:
        result = await client.call_tool("a.draw", {})
    (content,) = result.content
    assert isinstance(content, ImageContent)
    assert (base64.b64decode(content.data), content.mime_type) == (PICTURE, "image/png")


async def test_what_a_tool_says_to_the_person_comes_before_its_result(tmp_path: Path) -> None:
    config = tools(tmp_path, "a.speak", code=SPEAKS) + ON
    async with serving(tmp_path, config) as served, served.client() as client:
        result = await client.call_tool("a.speak", {})
    assert [part.text for part in result.content if isinstance(part, TextContent)] == [
        "Message to the person: one moment",
        "done now",
    ]


@ERAS
@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("a.fail", {}, "there is no such song"),
        ("a.add", {"n": "many"}, "a.add was not run: n"),
        ("a.add", None, "a.add was not run"),
        ("a.wipe", {}, "a.wipe was not run and nothing was changed"),
        ("a.gone", {}, "there is no tool named 'a.gone' here"),
    ],
)
async def test_what_went_wrong_is_a_result_in_words(
    tmp_path: Path, mode: Mode, name: str, arguments: dict[str, object] | None, words: str
) -> None:
    config = tools(tmp_path, "a.fail", code=FAILS) + ON
    number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    write_handler(tmp_path / "tools", "a.add", parameters=number)
    write_handler(tmp_path / "tools", "a.wipe", runtime={"destructive": True})
    async with serving(tmp_path, config) as served, served.client(mode) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert words in text_of(result)


@pytest.mark.requirement("ASK-8")
async def test_a_long_result_can_be_read_in_parts_by_its_client_alone(tmp_path: Path) -> None:
    config = f"{ON}[ask]\nmax_result_chars = 1000\n"
    tools(tmp_path, "a.long", code=LONG)
    config += f'[handlers]\npaths = ["{tmp_path / "tools"}"]\n'
    ask_for = {"reference": "result_1", "offset": 5000}
    async with serving(tmp_path, config) as served, served.client() as client:
        cut = await client.call_tool("a.long", {})
        part = await client.call_tool(RESULTS_READ, ask_for)
        async with served.client() as other:
            foreign = await other.call_tool(RESULTS_READ, ask_for)
        async with served.client(STATELESS) as stranger:
            unkept = await stranger.call_tool("a.long", {})
            none = await stranger.call_tool(RESULTS_READ, ask_for)
    assert "result_1" in text_of(cut)
    assert text_of(part).endswith("the end")
    assert foreign.is_error
    assert "There is no result 'result_1'" in text_of(foreign)
    assert "result_1" not in text_of(unkept)
    assert none.is_error


@pytest.mark.requirement("REL-9")
async def test_a_long_result_of_a_tool_that_is_taken_away_is_out_of_reach(tmp_path: Path) -> None:
    tools(tmp_path, "a.long", code=LONG)
    config = f"{ON}[ask]\nmax_result_chars = 1000\n"
    config += f'[handlers]\npaths = ["{tmp_path / "tools"}"]\n'
    async with serving(tmp_path, config) as served, served.client() as client:
        await client.call_tool("a.long", {})
        await served.runtime.brake.revoke("a.*", "", "operator")
        part = await client.call_tool(RESULTS_READ, {"reference": "result_1"})
    assert part.is_error
    assert "result_1 cannot be read any more" in text_of(part)


async def test_what_reads_long_results_is_listed_once_there_is_one(tmp_path: Path) -> None:
    config = (
        f"{ON}{SEARCHING}tool_search_always_loaded = ['a.long']\n[ask]\nmax_result_chars = 1000\n"
    )
    tools(tmp_path, "a.long", code=LONG)
    config += f'[handlers]\npaths = ["{tmp_path / "tools"}"]\n'
    async with serving(tmp_path, config) as served, served.client() as client:
        before = await listed(client)
        await client.call_tool("a.long", {})
        after = await listed(client)
    assert set(after) - set(before) == {RESULTS_READ}


@pytest.mark.requirement("REG-5")
async def test_calls_of_clients_count_like_those_of_asks(tmp_path: Path) -> None:
    config = tools(tmp_path, "a.fail", "a.gone", code=FAILS) + ON
    async with serving(tmp_path, config) as served, served.client() as client:
        await client.call_tool("a.fail", {})
        await client.call_tool("no.such", {})
        (tool,) = [tool for tool in served.runtime.tools() if tool["name"] == "a.fail"]
        numbers = served.runtime.metrics().splitlines()
    assert (tool["statistics"]["calls"], tool["statistics"]["failed"]) == (1, 1)
    assert {
        "session_runtime_mcp_clients 1",
        "session_runtime_mcp_calls_running 0",
        'session_runtime_mcp_calls_total{status="error"} 1',
        'session_runtime_mcp_calls_total{status="refused"} 1',
        'session_runtime_mcp_calls_total{status="ok"} 0',
    } <= set(numbers)
