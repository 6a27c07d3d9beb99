"""Calls of remote tools as a whole: one result, no second effect, the next server where one fails."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.handler import HandlerContext
from session_runtime.registry.invoke.guard import RouteStatistics
from session_runtime.registry.registry import Registry
from session_runtime.registry.spec import Annotations, Limits
from session_runtime.types import ToolResult
from tests.registry.invoke.calling import told
from tests.registry.invoke.remote import (
    BAD_ARGUMENTS,
    CONTEXT,
    CRASH,
    DOWN,
    EXPIRED,
    FAULTS,
    HANGS,
    INTERNAL,
    LOST_AFTER,
    LOST_BEFORE,
    NOT_FOUND,
    RATE_LIMITED,
    TOOL_ERROR,
    Fault,
    Server,
    call,
    masked,
)
from tests.registry.invoke.virtual_time import now, virtually

REPEATABLE = {
    "none": {},
    "read_only": {"annotations": Annotations(read_only=True)},
    "idempotent": {"annotations": Annotations(idempotent=True)},
    "keyed": {"keyed": True},
}
BREAKS = Limits(failures=2, pause_s=30)


@pytest.mark.requirement("RTE-8")
@given(
    faults=st.lists(st.lists(st.sampled_from(FAULTS), max_size=4), min_size=1, max_size=3),
    kind=st.sampled_from(sorted(REPEATABLE)),
    limits=st.sampled_from([Limits(), Limits(1, 2, 1, 5.0)]),
)
def test_no_sequence_of_faults_gives_a_second_effect_unless_that_does_no_harm(
    faults: list[list[Fault]], kind: str, limits: Limits
) -> None:
    servers = [Server(f"s{at}", each, limits) for at, each in enumerate(faults)]
    registry = Registry()

    async def run() -> ToolResult:
        result = await call(*servers, registry=registry, **REPEATABLE[kind])
        assert all(each.in_flight == 0 for each in registry.routes(now()).values())
        return result

    result = virtually(run())
    executions = sum(server.executions for server in servers)
    assert executions <= 1 or kind != "none"
    assert result.attempts == sum(server.attempts for server in servers)
    assert result.attempts <= 3 * len(servers)
    assert {key for server in servers for key in server.keys} <= {CONTEXT.idempotency_key}
    assert result.status != "ok" or executions >= 1


@pytest.mark.requirement("RTE-8")
def test_every_attempt_has_the_same_key_and_the_result_counts_them() -> None:
    server = Server("s", [LOST_BEFORE, DOWN])
    result = virtually(call(server))
    assert (result.status, result.attempts) == ("ok", 3)
    assert server.keys == ["ask1:c1"] * 3


@pytest.mark.requirement("RTE-8")
def test_a_lost_call_that_may_have_run_says_so() -> None:
    server = Server("s", [LOST_AFTER])
    status, code, content = masked(virtually(call(server)))
    assert (status, code, server.attempts) == ("error", "tool.interrupted", 1)
    assert content.startswith("far.t was interrupted:\n")
    assert content.endswith(
        "\nlost\n[TOKEN end of data]\n"
        "It may have taken effect: find that out before it is called again."
    )


@pytest.mark.requirement("RTE-3")
@pytest.mark.parametrize(
    "best",
    [
        Server("best", obstacle="it restarts"),
        Server("best", [LOST_BEFORE]),
        Server("best", [DOWN]),
    ],
    ids=["obstacle", "lost", "down"],
)
def test_the_next_of_equal_servers_takes_over_at_once(best: Server) -> None:
    async def run() -> None:
        result = await call(best, Server("next"), Server("last"))
        assert "from next" in result.content
        assert now() == 0.0

    virtually(run())


@pytest.mark.requirement("RTE-3")
def test_a_server_whose_breaker_is_open_is_passed_over_until_its_pause_is_over() -> None:
    async def run() -> list[str]:
        registry = Registry()
        best, other = Server("best", [INTERNAL, INTERNAL], BREAKS), Server("other")
        said: list[str] = []
        for pause_s in (0, 0, 0, 30):
            await asyncio.sleep(pause_s)
            result = await call(best, other, registry=registry)
            said.append("best" if "from best" in result.content else result.error_code or "other")
        return said

    assert virtually(run()) == ["mcp.internal", "mcp.internal", "other", "best"]


@pytest.mark.requirement("RTE-4")
def test_a_server_that_no_longer_knew_its_session_has_not_failed() -> None:
    async def run() -> list[str]:
        registry = Registry()
        best, other = Server("best", [EXPIRED, EXPIRED], BREAKS), Server("other")
        results = [await call(best, other, registry=registry) for _ in range(3)]
        return ["best" if "from best" in result.content else "other" for result in results]

    assert virtually(run()) == ["other", "other", "best"]


@pytest.mark.requirement("RTE-6")
def test_tools_of_a_server_that_is_down_answer_at_once() -> None:
    async def run() -> None:
        server = Server("s", obstacle="the server 's' is restarting")
        result = await call(server)
        assert told(result) == (
            "error",
            "tool.unavailable",
            "far.t was not run: the server 's' is restarting. Trying again later may help.",
        )
        assert (result.attempts, server.attempts, now()) == (0, 0, 0.0)

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_an_open_breaker_answers_at_once_and_says_when_to_come_again() -> None:
    async def run() -> None:
        registry, server = Registry(), Server("s", [INTERNAL, INTERNAL], BREAKS)
        for _ in range(2):
            await call(server, registry=registry)
        await asyncio.sleep(10)
        result = await call(server, registry=registry)
        assert told(result) == (
            "error",
            "tool.unavailable",
            "far.t was not run: it failed several times in a row and is left alone for a while. "
            "Trying again in 20 s may help.",
        )
        assert (server.attempts, now()) == (2, 10.0)

    virtually(run())


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (TOOL_ERROR, "closed"),
        (BAD_ARGUMENTS, "closed"),
        (NOT_FOUND, "closed"),
        (RATE_LIMITED, "closed"),
        (INTERNAL, "open"),
        (LOST_AFTER, "open"),
        (LOST_BEFORE, "open"),
        (DOWN, "closed"),
        (CRASH, "open"),
        (HANGS, "open"),
    ],
)
def test_what_a_server_answers_does_not_open_its_breaker(fault: Fault, state: str) -> None:
    async def run() -> str:
        registry, server = Registry(), Server("s", [fault] * 9, BREAKS)
        for _ in range(2):
            await call(server, registry=registry, hard_s=61.0)
        return registry.routes(now())["mcp:s"].breaker

    assert virtually(run()) == state


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize(
    ("hurry", "state"), [({}, "open"), ({"context": HandlerContext(deadline=1.0)}, "closed")]
)
def test_who_asks_in_a_hurry_cannot_open_the_breaker_for_others(
    hurry: dict[str, Any], state: str
) -> None:
    async def run() -> str:
        registry, server = Registry(), Server("s", [HANGS], Limits(failures=1, pause_s=600))
        await call(server, registry=registry, **hurry)
        return registry.routes(now())["mcp:s"].breaker

    assert virtually(run()) == state


@pytest.mark.requirement("RTE-6")
def test_one_of_fifty_calls_is_the_probe() -> None:
    async def run() -> None:
        registry, server = Registry(), Server("s", [INTERNAL, INTERNAL, HANGS], BREAKS)
        for _ in range(2):
            await call(server, registry=registry)
        await asyncio.sleep(30)
        results = await asyncio.gather(*(call(server, registry=registry) for _ in range(50)))
        assert server.attempts == 3
        codes = [result.error_code for result in results]
        assert (codes.count("tool.unavailable"), codes.count("tool.timeout")) == (49, 1)

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_no_more_calls_than_a_server_bears_are_under_way_and_all_get_their_turn() -> None:
    async def run() -> None:
        most, running = 0, 0

        async def work(context: HandlerContext) -> str:
            nonlocal most, running
            running += 1
            most = max(most, running)
            await asyncio.sleep(1)
            running -= 1
            return "done"

        registry, server = Registry(), Server("s", limits=Limits(max_concurrency=4), work=work)
        results = await asyncio.gather(*(call(server, registry=registry) for _ in range(20)))
        assert {result.status for result in results} == {"ok"}
        assert (most, now()) == (4, 5.0)

    virtually(run())


@pytest.mark.requirement("RTE-6")
@pytest.mark.requirement("CFG-4")
def test_a_server_that_is_reached_in_another_way_by_now_is_called_at_once() -> None:
    async def run() -> None:
        registry = Registry()
        old = Server("s", [INTERNAL] * 9, BREAKS, reaches="old token")
        new = Server("s", limits=BREAKS, reaches="new token")
        for _ in range(2):
            await call(old, registry=registry)
        assert (await call(old, registry=registry)).error_code == "tool.unavailable"
        assert (await call(new, registry=registry)).status == "ok"
        assert (old.attempts, new.attempts, now()) == (2, 1, 0.0)

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_two_callers_with_sessions_of_their_own_get_no_more_of_a_server_together_than_one() -> None:
    async def run() -> None:
        async def work(context: HandlerContext) -> str:
            await asyncio.sleep(1)
            return "done"

        limits, registry = Limits(max_concurrency=1, rate_per_minute=2), Registry()
        callers = [
            Server("s", limits=limits, work=work, reaches=session)
            for session in ("own", "boss", "own")
        ]
        await asyncio.gather(*(call(each, registry=registry) for each in callers[:2]))
        assert now() == 2.0
        await call(callers[2], registry=registry)
        assert now() == 61.0

    virtually(run())


@pytest.mark.requirement("RTE-2")
def test_who_has_no_session_is_told_that_there_is_no_such_tool() -> None:
    assert told(virtually(call())) == (
        "refused",
        "tool.unknown",
        "there is no tool named far.t here.",
    )


@pytest.mark.requirement("RTE-7")
def test_a_caller_that_goes_away_while_it_waits_for_room_leaves_nothing() -> None:
    async def run() -> None:
        registry, server = Registry(), Server("s", [HANGS], Limits(max_concurrency=1))
        first = asyncio.create_task(call(server, registry=registry))
        await asyncio.sleep(1)
        second = asyncio.create_task(call(server, registry=registry))
        await asyncio.sleep(1)
        assert registry.routes(now())["mcp:s"] == RouteStatistics(1, 0, "closed", 1, 1, {})
        for each in (second, first):
            each.cancel()
            with pytest.raises(asyncio.CancelledError):
                await each
        assert registry.routes(now())["mcp:s"] == RouteStatistics(1, 0, "closed", 0, 0, {})
        assert (server.attempts, server.cancelled) == (1, 1)

    virtually(run())
