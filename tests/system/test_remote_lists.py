"""Lists of servers' tools as a model service gets them: whole, and within what it takes (RTE-5)."""

from pathlib import Path
from typing import Any

import pytest

from session_runtime.testing.mcp_servers.raw_http import RawHttp
from session_runtime.testing.mcp_servers.script import Script
from session_runtime.testing.replies import reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from tests.support import ask, calls, chat_profile, opened, says, scripted
from tests.system.leftovers import nothing_left
from tests.system.server_config import server, table
from tests.system.test_servers import ALL_TOOLS, SEARCHED, mcp, results, site, statuses, until

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


def sent(upstream: Upstream) -> dict[str, Any]:
    """The schemas of the tools of the first request, by name."""
    functions = [tool["function"] for tool in upstream.requests[0]["tools"]]
    return {function["name"]: function["parameters"] for function in functions}


@pytest.mark.requirement("RTE-5")
async def test_schemas_reach_the_model_whole_and_good_ones_do_not_suffer_from_bad_ones(
    tmp_path: Path,
) -> None:
    ran = tmp_path / "ran"
    script = Script(
        tools=("plain", "closed", "defs", "string_root", "null_schema"), executions=str(ran)
    )
    replies = [
        reply_calls(("a__defs", {"f": "x"}), ("a__closed", {"any": 1}), ("a__defs", {"f": "fit"})),
        reply_text("done"),
    ]
    async with Upstream(replies) as upstream:
        text = mcp(server("a", script)) + ALL_TOOLS + chat_profile(upstream.base_url)
        async with site(tmp_path, text) as runtime:
            told = statuses(runtime)["a"]
            assert (told["tools"], told["refused"]) == (3, 2)
            wrong, stray, right = results(await ask(runtime, "go"))
        assert sent(upstream) == {
            "a__closed": {**NOTHING, "additionalProperties": False},
            "a__defs": {
                "type": "object",
                "properties": {"f": {"$ref": "#/$defs/F"}},
                "$defs": {"F": {"enum": ["fit", "raw"]}},
            },
            "a__plain": NOTHING,
        }
    assert "not run" in wrong
    assert "not run" in stray
    assert '{"f": "fit"}' in right
    assert len(ran.read_text("utf-8").splitlines()) == 1


@pytest.mark.requirement("ASK-12b")
async def test_more_tools_than_a_service_takes_are_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    many = mcp(server("a", Script(tools=("many:158",))))
    async with Upstream([reply_text("never")]) as upstream:
        profile = chat_profile(upstream.base_url, max_tools=128)
        async with site(tmp_path, many + ALL_TOOLS + profile) as runtime:
            (warning,) = [each for each in runtime.status()["warnings"] if "max_tools" in each]
            assert (
                "the 158 tools are sent in each request, of which this profile takes 128" in warning
            )
            failed = (await ask(runtime, "go")).result
        assert failed.outcome == "failed"
        assert failed.error is not None
        assert (
            "takes at most 128 tools (max_tools), and this request has 158" in failed.error.message
        )
        assert upstream.requests == []


@pytest.mark.requirement("TS-1")
async def test_with_tool_search_any_number_of_tools_can_be_reached_within_what_a_service_takes(
    tmp_path: Path,
) -> None:
    replies = [
        reply_calls(("tool_search", {"query": "select:a.tool_157"})),
        reply_calls(("a__tool_157", {"text": "hello"})),
        reply_text("done"),
    ]
    many = mcp(server("a", Script(tools=("many:158",))))
    async with Upstream(replies) as upstream:
        profile = chat_profile(upstream.base_url, max_tools=128)
        async with site(tmp_path, many + SEARCHED + profile) as runtime:
            asked = await ask(runtime, "go")
        assert "hello" in results(asked)[-1]
        assert max(len(request["tools"]) for request in upstream.requests) <= 128


@pytest.mark.requirement("RTE-6")
async def test_a_server_that_listens_may_be_started_again_between_two_asks(tmp_path: Path) -> None:
    script = scripted(tmp_path, calls(("a.echo", {"text": "hello"})), says("done"))
    with nothing_left(), RawHttp(Script(era="handshake")) as web:
        text = mcp(table("a", url=web.url)) + ALL_TOOLS + script
        async with opened(tmp_path, text) as runtime:
            for _ in range(3):
                assert "hello" in results(await ask(runtime, "go"))[0]
                web.kill()
                web.start()
                await runtime.servers.refresh("a")
                await until(lambda: statuses(runtime)["a"]["state"] == "ready")
            assert statuses(runtime)["a"]["restarts"] == 3
