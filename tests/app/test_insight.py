"""What operators are told of searches, permissions and asks that ended (OPS-3)."""

import json
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.errors import RequestError
from session_runtime.types import ToolsLoaded
from tests.support import ask, calls, opened, says, scripted, write_handler

RULES = """
[handlers]
paths = ["tools"]
bundled = false
[skills]
prefetch_tools = []
tool_search_enabled = true
tool_search_always_loaded = ["now"]
[access.rules.visitors]
users = ["guest"]
deny = ["orders.*"]
"""
USER, GUEST = Identity("u"), Identity("guest")

pytestmark = pytest.mark.requirement("OPS-3")


def site(folder: Path) -> str:
    write_handler(folder / "tools", "now", description="Tells the time.")
    write_handler(folder / "tools", "orders.find", description="Finds an order by its number.")
    write_handler(folder / "tools", "orders.cancel", description="Cancels an order.")
    write_handler(folder / "tools", "weather.today", description="Tells the weather.")
    search = ("tool_search", {"query": "find an order"})
    return RULES + scripted(folder, calls(search), calls(("orders.find", {})), says("done"))


async def test_a_search_is_told_just_as_an_ask_would_be_answered(tmp_path: Path) -> None:
    async with opened(tmp_path, site(tmp_path)) as runtime:
        told = await runtime.insight.search("find an order", USER, 10)
        loaded: list[str] = []
        result = await runtime.ask(
            AskRequest("go", identity=USER),
            lambda event: loaded.extend(event.names) if isinstance(event, ToolsLoaded) else None,
        )
        record = runtime.insight.record(result.ask_id)
    answer = next(message for message in result.new_messages if message.role == "tool")
    assert told["answer"] == answer.content
    assert [tool["name"] for tool in told["loaded"]] == loaded
    first, second = record["turns"][:2]
    assert told["exposed"] == first["exposed"]
    assert told["tokens"]["exposed"] == first["exposed_tokens"]
    assert told["tokens"]["loaded"] == second["exposed_tokens"] - first["exposed_tokens"]
    assert told["tokens"]["directory"] == record["tool_search"]["directory_tokens"]
    assert told["tokens"]["full_list"] * len(record["turns"]) == record["tokens_full_list"]
    assert told["rule"] == record["tool_search"]["rule"] == "deferred"


async def test_the_parts_of_a_match_add_up_to_its_score(tmp_path: Path) -> None:
    async with opened(tmp_path, site(tmp_path)) as runtime:
        matches = (await runtime.insight.search("find an order", USER, 10))["matches"]
    assert matches[0]["name"] == "orders.find"
    for match in matches:
        assert sum(part["score"] for part in match["parts"]) == pytest.approx(match["score"])


async def test_a_search_changes_nothing_for_asks(tmp_path: Path) -> None:
    async with opened(tmp_path, site(tmp_path)) as runtime:
        first = await runtime.insight.search("find an order", USER, 10)
        assert await runtime.insight.search("find an order", USER, 10) == first
        assert runtime.insight.totals()["asks"] == 0


async def test_who_may_not_use_a_tool_finds_it_nowhere_and_the_rule_is_named(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, site(tmp_path)) as runtime:
        found = await runtime.insight.search("orders", GUEST, 10)
        answers = [runtime.insight.access("orders.find", who) for who in (USER, GUEST)]
        permitted = [runtime.insight.permitted(who)["tools"] for who in (USER, GUEST)]
    assert "orders" not in json.dumps([found["matches"], found["directory"], found["loaded"]])
    assert permitted == [
        ["now", "orders.cancel", "orders.find", "weather.today"],
        ["now", "weather.today"],
    ]
    assert answers == [
        {"tool": "orders.find", "allowed": True, "why": "allowed by access.default"},
        {"tool": "orders.find", "allowed": False, "why": "denied by access.rules.visitors"},
    ]


async def test_what_a_principal_may_not_do_itself_it_may_do_for_nobody_and_that_is_told(
    tmp_path: Path,
) -> None:
    keys = "".join(
        f'[http.keys.{name}]\nhash = "sha256:{digit * 64}"\nact_for = {act_for}\n'
        for name, digit, act_for in (("guest", "a", '["u"]'), ("bot", "b", '["u"]'))
    )
    async with opened(tmp_path, site(tmp_path) + keys) as runtime:
        insight = runtime.insight
        answers = [insight.access("orders.find", USER, name) for name in ("bot", "guest")]
        itself = insight.access("orders.find", Identity(), "bot")
        names = [insight.permitted(USER, name)["tools"] for name in ("bot", "guest")]
        found = await insight.search("orders", USER, 10, "guest")
        for stated, name, problem in (
            (GUEST, "bot", "may not act for"),
            (USER, "bott", "did you mean 'bot'"),
        ):
            with pytest.raises(RequestError, match=problem):
                insight.permitted(stated, name)
        listed = insight.principals()["principals"]
    assert answers == [
        {"tool": "orders.find", "allowed": True, "why": "allowed by access.default"},
        {
            "tool": "orders.find",
            "allowed": False,
            "why": "denied by access.rules.visitors, for the caller 'guest'",
        },
    ]
    assert itself["allowed"]
    assert names == [
        ["now", "orders.cancel", "orders.find", "weather.today"],
        ["now", "weather.today"],
    ]
    assert (found["permitted"], found["matches"]) == (2, [])
    assert listed[0] == {"name": "guest", "roles": [], "channel": None, "group": None}


async def test_a_tool_that_is_not_there_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    async with opened(tmp_path, site(tmp_path)) as runtime:
        with pytest.raises(RequestError, match=r"did you mean 'orders\.find'") as caught:
            runtime.insight.access("orders.fnd", USER)
    assert caught.value.code == "request.unknown_tool"


@pytest.mark.parametrize("query", ["", " ", "select:", "+", "\ud800", "a" * 4_000])
async def test_no_query_breaks_it(tmp_path: Path, query: str) -> None:
    async with opened(tmp_path, site(tmp_path)) as runtime:
        assert (await runtime.insight.search(query, USER, 10))["query"] == query


async def test_without_tool_search_the_rule_that_keeps_it_off_is_told(tmp_path: Path) -> None:
    off = site(tmp_path).replace("tool_search_enabled = true", "tool_search_enabled = false")
    async with opened(tmp_path, off) as runtime:
        told = await runtime.insight.search("find an order", USER, 10)
    assert (told["rule"], told["answer"], told["loaded"]) == ("off", None, [])
    assert told["tokens"]["exposed"] == told["tokens"]["full_list"]
    assert told["matches"][0]["name"] == "orders.find"


async def _asked(runtime: Runtime, count: int) -> list[dict[str, Any]]:
    for _ in range(count):
        await ask(runtime, "go")
    return [runtime.insight.record(each["ask_id"]) for each in runtime.insight.ended(count)]


async def test_the_totals_are_the_sums_of_what_the_traces_tell(tmp_path: Path) -> None:
    async with opened(tmp_path, site(tmp_path)) as runtime:
        records = await _asked(runtime, 5)
        totals = runtime.insight.totals()
    assert totals["asks"] == len(records) == 5
    assert totals["outcomes"] == {"answered": 5}
    assert totals["tokens_saved"] == sum(record["tokens_saved"] for record in records)
    assert totals["usage"]["total_tokens"] == sum(r["usage"]["total_tokens"] for r in records)
    assert totals["daemon_s"] == pytest.approx(sum(r["daemon_s"] for r in records), abs=1e-5)
