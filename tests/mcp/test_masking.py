"""Nothing that a server is given in secret is shown in what it says, whole or in part."""

import base64
from typing import Any

import pytest

from session_runtime.config.mcp import McpServer
from session_runtime.errors import ToolError
from session_runtime.mcp.content import value_of
from session_runtime.mcp.listed import MAX_DESCRIPTION_CHARS, read_definition
from session_runtime.mcp.masking import kept_from_results, secrets_of
from session_runtime.mcp.stderr_log import Shown
from tests.mcp.peer import Answer, Json, Peer, kept, tool

pytestmark = pytest.mark.requirement("RTE-6")

BASIC = base64.b64encode(b"alice:open-sesame").decode()
COMMAND = {"command": "x"}
URL = {"url": "http://h.test/mcp"}


def shown(settings: dict[str, Any], text: str) -> str:
    return Shown(secrets_of(McpServer.model_validate(settings)))(text)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({**URL, "headers": {"Authorization": "Bearer corp.Zk3v99-aaBB"}}, "corp.Zk3v99-aaBB"),
        ({**URL, "headers": {"Authorization": f"Basic {BASIC}"}}, "open-sesame"),
        ({**URL, "headers": {"Cookie": "lang=en; sid=qq11-ww22"}}, "qq11-ww22"),
        ({**URL, "headers": {"X-Keys": '{"a": "first-1", "b": "second-2"}'}}, "second-2"),
        ({**COMMAND, "env": {"DB": "postgres://bob:hunter2x@db/x"}}, "hunter2x"),
        ({**COMMAND, "env": {"DB": "postgres://bob:h%40nt3r@db/x"}}, "h@nt3r"),
        ({**COMMAND, "env": {"REPO": "https://tok3n-99@git.test/x"}}, "tok3n-99"),
        ({**COMMAND, "env": {"HOOK": "https://h.test/x?key=abc%2012"}}, "abc 12"),
        ({**COMMAND, "env": {"PGOPT": "user=bob password=pazz9"}}, "pazz9"),
        (
            {
                **COMMAND,
                "args": (
                    "--db",
                    "postgres://bob:hunter2x@db/x",
                ),
            },
            "hunter2x",
        ),
        (
            {
                **COMMAND,
                "args": (
                    "--api-key",
                    "k3y-1",
                ),
            },
            "k3y-1",
        ),
        ({**COMMAND, "args": ("--api-key=k3y-1",)}, "k3y-1"),
        ({**COMMAND, "args": ("-H", "Authorization: Bearer k3y-1")}, "k3y-1"),
        ({**COMMAND, "args": ('{"token": "k3y-1"}',)}, "k3y-1"),
        ({"url": "http://h.test/x?key=QRS-99"}, "QRS-99"),
        ({"url": "http://h.test/x?profile=of-somebody-1"}, "of-somebody-1"),
        ({"url": "http://h.test/s/0a1b2c3d4e5f6a7b8c9d/mcp"}, "0a1b2c3d4e5f6a7b8c9d"),
    ],
)
def test_a_part_of_a_secret_is_masked_like_the_whole(settings: dict[str, Any], part: str) -> None:
    assert shown(settings, f"no access for ({part}) today") == "no access for (***) today"


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "http://maps.test/mcp?lang=en", "headers": {"Accept-Language": "en"}},
        {
            "command": "x",
            "args": (
                "--folder",
                "/srv/shared",
                "--mode=fast",
            ),
        },
        {"command": "x", "env": {"DB": "postgres://bob@db/shared"}},
    ],
)
def test_ordinary_words_stay_readable(settings: dict[str, Any]) -> None:
    told = "maps.test/mcp: bob may not write to /srv/shared in mode fast, lang en"
    assert shown(settings, told) == told


SETTINGS = {
    "command": "x",
    "args": ("postgres://bob:hunter2-hunter2@db/x", "--mode=production"),
    "env": {"API_TOKEN": "Bearer t0ken-t0ken", "REGION": "eu-central-1", "PIN_TOKEN": "1234"},
}


@pytest.mark.requirement("RTE-10")
@pytest.mark.parametrize(
    ("result", "value"),
    [
        (
            {"content": [{"type": "text", "text": "t0ken-t0ken at eu-central-1: 1234"}]},
            "*** at eu-central-1: 1234",
        ),
        (
            {"structuredContent": {"hunter2-hunter2": ["hunter2-hunter2!", 7, None, "production"]}},
            {"***": ["***!", 7, None, "production"]},
        ),
        (
            {"content": [{"type": "text", "text": "t0ken-t0ken" + "x" * 300_000}]},
            "***" + "x" * 300_000,
        ),
    ],
)
async def test_what_is_certainly_a_secret_is_masked_in_results_and_nothing_else(
    result: dict[str, Any], value: object
) -> None:
    assert await value_of(result, kept_from_results(McpServer.model_validate(SETTINGS))) == value


TOKEN = "t0ken-t0ken"
LONG = "k-" + "0123456789" * 90


@pytest.mark.requirement("RTE-5")
@pytest.mark.requirement("CFG-4")
async def test_what_a_server_lists_holds_no_secret_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keep = {"type": "string", "default": TOKEN, "enum": [TOKEN, "eu-central-1"], TOKEN: 1}
    schema = {"type": "object", "properties": {"dsn": keep}}
    tools = [
        tool("query", description=f"Asks postgres://u:{TOKEN}@h/db", inputSchema=schema),
        tool("titled", description=None, title=f"For {TOKEN}", outputSchema=schema),
        tool(f"of_{TOKEN}", description=None),
        tool("odd", inputSchema={"type": LONG}),
        tool("far", inputSchema={"type": "object", "$ref": f"http://h/{LONG}"}),
        {"name": f"x {TOKEN} {LONG}", "inputSchema": None},
    ]
    peer = Peer(tools=tools, answers={"tools/list": circling(tools)})
    async with kept(peer, env={**SETTINGS["env"], "LONG_TOKEN": LONG}) as it:
        listing = it.connection.listing
    assert listing is not None
    told = f"{listing} {caplog.text}"
    assert not any(part in told for part in (TOKEN, LONG[:20]))
    masked_schema = {
        "type": "object",
        "properties": {
            "dsn": {"type": "string", "default": "***", "enum": ["***", "eu-central-1"], "***": 1}
        },
    }
    query, titled = listing.tools
    assert (query.description, query.parameters) == ("Asks postgres://u:***@h/db", masked_schema)
    assert (titled.description, titled.output) == ("For ***", masked_schema)
    assert [(each.name, each.reason) for each in listing.refused] == [
        ("of_***", "its name holds a secret that the server is given"),
        ("odd", 'inputSchema: must have "type": "object", got "***"'),
        ("far", listing.refused[2].reason),
        ("x *** ***", "its name holds a secret that the server is given"),
        ("(further pages)", "the server gave the cursor '***' twice: no more pages are read"),
    ]


def circling(tools: list[Json]) -> Answer:
    """A server that repeats one page, whose cursor holds a secret."""

    async def page(message: Json) -> Json:
        first = "cursor" not in (message.get("params") or {})
        return {"tools": tools if first else [], "nextCursor": TOKEN}

    return page


@pytest.mark.requirement("CFG-4")
def test_a_secret_at_the_end_of_what_is_kept_of_a_description_is_not_kept_in_part() -> None:
    for before in range(MAX_DESCRIPTION_CHARS - len(LONG) - 2, MAX_DESCRIPTION_CHARS + 1):
        raw = tool("t", description="x" * before + LONG + LONG + "y" * 100)
        kept = read_definition(raw, (LONG,)).definition.description
        assert "k-" not in kept
        assert len(kept) <= MAX_DESCRIPTION_CHARS


@pytest.mark.requirement("RTE-4")
def test_another_secret_makes_no_other_tool() -> None:
    definitions = [
        read_definition(tool("t", description=f"For {secret}."), (secret,)).definition
        for secret in ("first-secret", "second-secret-1")
    ]
    assert definitions[0] == definitions[1]


@pytest.mark.requirement("RTE-10")
async def test_the_words_of_a_tool_that_failed_hold_no_secret_either() -> None:
    async def echo_environment(_: Json) -> Json:
        return {"content": [{"type": "text", "text": "no: t0ken-t0ken"}], "isError": True}

    peer = Peer(answers={"tools/call": echo_environment})
    async with kept(peer, env=SETTINGS["env"]) as it:
        with pytest.raises(ToolError, match=r"^no: \*\*\*$"):
            await it.call("echo")
