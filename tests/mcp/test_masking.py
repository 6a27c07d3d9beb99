"""Nothing that a server is given in secret is shown in what it says, whole or in part."""

import base64
from typing import Any

import pytest

from session_runtime.config.mcp import McpServer
from session_runtime.errors import ToolError
from session_runtime.mcp.content import value_of
from session_runtime.mcp.masking import kept_from_results, secrets_of
from session_runtime.mcp.stderr_log import Shown
from tests.mcp.peer import Json, Peer, kept

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


@pytest.mark.requirement("RTE-10")
async def test_the_words_of_a_tool_that_failed_hold_no_secret_either() -> None:
    async def echo_environment(_: Json) -> Json:
        return {"content": [{"type": "text", "text": "no: t0ken-t0ken"}], "isError": True}

    peer = Peer(answers={"tools/call": echo_environment})
    async with kept(peer, env=SETTINGS["env"]) as it:
        with pytest.raises(ToolError, match=r"^no: \*\*\*$"):
            await it.call("echo")
