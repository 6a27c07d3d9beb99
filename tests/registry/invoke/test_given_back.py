"""A yes is used up by a call that may have reached its tool, and by no other."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from session_runtime.audit.log import AuditLog
from session_runtime.registry.confirmations import Asker, Confirmations
from session_runtime.registry.invoke.consent import AskConsent
from session_runtime.registry.registry import Registry
from session_runtime.registry.revocations import Revocations
from session_runtime.registry.spec import Annotations, Limits
from session_runtime.types import Identity, ToolCall
from tests.registry.invoke.remote import (
    CRASH,
    DOWN,
    EXPIRED,
    FAULTS,
    LOST_AFTER,
    LOST_BEFORE,
    NOT_FOUND,
    RATE_LIMITED,
    Fault,
    Server,
    call,
)
from tests.registry.invoke.test_audited import FullDisk

ANN = Asker("local", Identity("ann"))
DESTRUCTIVE = Annotations(destructive=True)


async def agreed() -> AskConsent:
    """The consent of an ask to whose one call, as the model makes it, a person has said yes."""
    confirmations = Confirmations()
    before = AskConsent(confirmations, ANN, "ask_1", 600)
    await made(before, Server("a"), "c0")
    pending = before.pending("c0")
    assert pending is not None
    return AskConsent(confirmations, ANN, "ask_2", 600, confirmations.claim(ANN, [pending.token]))


async def made(consent: AskConsent, server: Server, call_id: str, **options: Any) -> str | None:
    """Make the call; gives the code of what went wrong."""
    asked = consent.of(ToolCall(call_id, "far.t", "{}"))
    options = {"annotations": DESTRUCTIVE, "jitter": 0.0, **options}
    return (await call(server, consent=asked, **options)).error_code


async def still_counts(consent: AskConsent) -> bool:
    """Whether the very same call runs now, and then no further one."""
    server = Server("a")
    runs = await made(consent, server, "again") is None
    assert await made(consent, server, "once more") == "tool.needs_confirmation"
    assert server.executions == runs
    return runs


@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize("fault", FAULTS[:-1], ids=repr)
async def test_a_yes_counts_again_after_a_call_that_did_not_reach_its_tool(fault: Fault) -> None:
    consent, server = await agreed(), Server("a", [fault] * 3)
    assert await made(consent, server, "c1") is not None
    assert server.attempts > 0
    harmless = (LOST_BEFORE, DOWN, EXPIRED, RATE_LIMITED, NOT_FOUND)
    assert await still_counts(consent) is (fault in harmless)
    assert not (fault in harmless and fault.executes)


@pytest.mark.requirement("RTE-9b")
async def test_a_yes_counts_again_where_no_attempt_was_made() -> None:
    consent, server = await agreed(), Server("a", obstacle="it is down")
    assert await made(consent, server, "c1") == "tool.unavailable"
    assert server.attempts == 0
    assert await still_counts(consent)


@pytest.mark.requirement("RTE-9b")
async def test_a_yes_counts_again_after_a_call_that_could_not_be_recorded(tmp_path: Path) -> None:
    consent, server = await agreed(), Server("a")
    log = AuditLog(FullDisk(tmp_path, None, 10**9, 0), None)
    assert await made(consent, server, "c1", audit=log) == "tool.not_recorded"
    await log.aclose()
    assert await still_counts(consent)


@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize("faults", [(LOST_AFTER, LOST_BEFORE, LOST_BEFORE), (CRASH,)])
async def test_one_attempt_that_may_have_run_uses_a_yes_up(faults: Sequence[Fault]) -> None:
    consent, server = await agreed(), Server("a", faults)
    repeatable = Annotations(destructive=True, idempotent=True)
    assert await made(consent, server, "c1", annotations=repeatable) is not None
    assert not await still_counts(consent)


@pytest.mark.requirement("RTE-9b")
@pytest.mark.requirement("REL-9")
async def test_a_call_that_is_revoked_while_it_waits_for_room_has_not_run() -> None:
    """The server is full, so that the second call waits for the first; both are of one tool."""
    going, go_on = asyncio.Event(), asyncio.Event()

    async def work(_: object) -> object:
        going.set()
        await go_on.wait()
        return "done"

    registry, revocations, consent = Registry(), Revocations(), await agreed()
    busy = Server("a", limits=Limits(max_concurrency=1), work=work)
    first = asyncio.create_task(call(busy, registry=registry))
    await going.wait()
    asked = consent.of(ToolCall("c1", "far.t", "{}"))
    second = asyncio.create_task(
        call(
            busy,
            registry=registry,
            revocations=revocations,
            consent=asked,
            annotations=DESTRUCTIVE,
        )
    )
    guard, now = registry.guard("mcp:a", "mcp:far"), asyncio.get_running_loop().time
    while not guard.statistics(now()).waiting:  # noqa: ASYNC110 - no event tells it
        await asyncio.sleep(0)
    await revocations.revoke("far.t")
    result = await second
    go_on.set()
    await first
    assert result.content.startswith("far.t was not run: an operator has taken it away meanwhile.")
    assert busy.executions == 1
    assert await still_counts(consent)
