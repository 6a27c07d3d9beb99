"""Numbers of a tool survive reloads, and an edited tool starts anew."""

import asyncio

import pytest

from session_runtime.registry.catalog import build_catalog
from session_runtime.registry.invoke.guard import Pass
from session_runtime.registry.registry import Registry, ToolStatistics
from session_runtime.registry.spec import UNLIMITED, Limits
from tests.registry.tools import FunctionSource, nothing, spec

UNUSED = {
    "calls": 0,
    "ok": 0,
    "failed": 0,
    "total_ms": 0.0,
    "last_ms": 0.0,
    "last_error": None,
    "imported": False,
}


@pytest.mark.requirement("REG-5")
def test_calls_are_counted_with_their_durations_and_the_last_error() -> None:
    registry, tool = Registry(), spec("a")
    registry.record(tool, 0.5, error="no disk", imported=True)
    registry.record(tool, 0.25, error=None, imported=False)
    assert registry.statistics(tool) == ToolStatistics(
        calls=2, ok=1, failed=1, total_s=0.75, last_s=0.25, last_error="no disk", imported=True
    )
    assert registry.statistics(tool).to_json() == {
        "calls": 2,
        "ok": 1,
        "failed": 1,
        "total_ms": 750.0,
        "last_ms": 250.0,
        "last_error": "no disk",
        "imported": True,
    }


@pytest.mark.requirement("REG-5")
def test_a_tool_that_was_never_called_has_zeros() -> None:
    assert Registry().statistics(spec("a")).to_json() == UNUSED


@pytest.mark.requirement("REG-5")
async def test_a_reload_keeps_the_numbers_of_unchanged_tools_only() -> None:
    registry = Registry()
    for tool in (spec("same"), spec("edited", digest="old"), spec("gone")):
        registry.record(tool, 1.0, error=None, imported=True)
    tools = {spec("same"): nothing, spec("edited", digest="new"): nothing}
    registry.retain(await build_catalog([FunctionSource("s", tools)]))
    calls = {name: registry.statistics(spec(name)).calls for name in ("same", "gone")}
    assert calls == {"same": 1, "gone": 0}
    for digest in ("old", "new"):
        assert registry.statistics(spec("edited", digest=digest)).calls == 0


@pytest.mark.requirement("REG-5")
def test_the_last_error_holds_no_secret_of_a_caller() -> None:
    registry, tool = Registry(), spec("t")
    registry.record(tool, 0.1, 'key: must be short, got "sk-abcdefgh12345678"', imported=True)
    assert registry.statistics(tool).last_error == 'key: must be short, got "***"'


@pytest.mark.requirement("RTE-6")
async def test_a_route_is_shown_by_its_gauges() -> None:
    registry, limits = Registry(), Limits(max_concurrency=1, failures=1, pause_s=600)
    guard = registry.guard("mcp:far", "mcp:far")
    entered = await guard.enter(limits, 0.0)
    assert isinstance(entered, Pass)
    await guard.enter(limits, 0.0)
    guard.leave(entered, "failed")
    guard.refuse("it restarts")
    shown = registry.routes(asyncio.get_running_loop().time())
    assert {route: each.to_json() for route, each in shown.items()} == {
        "mcp:far": {
            "calls": 1,
            "failures": 1,
            "breaker": "open",
            "in_flight": 0,
            "waiting": 0,
            "refused": {"full": 1, "obstacle": 1},
        }
    }


@pytest.mark.requirement("RTE-6")
async def test_a_reload_keeps_the_guards_of_sources_that_are_still_there_or_in_use() -> None:
    registry = Registry()
    for name in ("same", "gone", "busy"):
        guard = registry.guard(f"route of {name}", name)
        entered = await guard.enter(UNLIMITED, 0.0)
        assert isinstance(entered, Pass)
        if name != "busy":
            guard.leave(entered, "answered")
    catalog = await build_catalog([FunctionSource("same", {})])
    registry.retain(catalog)
    assert list(registry.routes(0.0)) == ["route of busy", "route of same"]
    assert registry.guard("route of busy", "busy").idle is False
