"""Every call is recorded, however it ended, and none is made that had to be recorded and could not be."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from session_runtime.audit.head import Head
from session_runtime.audit.log import AuditLog
from session_runtime.audit.store import AuditStore
from session_runtime.audit.tail import last_lines
from session_runtime.config.audit import OnError
from session_runtime.errors import ToolError
from session_runtime.handler import HandlerContext
from session_runtime.registry.catalog import build_catalog
from session_runtime.registry.invoke.pipeline import Invoker
from session_runtime.registry.registry import Registry
from session_runtime.registry.spec import Annotations
from session_runtime.types import Identity, JsonObject, Principal, ToolResult
from tests.audit.logs import verified
from tests.registry.invoke.calling import returning
from tests.registry.tools import ANYTHING, Function, FunctionSource, spec

CONTEXT = HandlerContext(Identity("u1"), "ask_1", "c1")
HARMLESS = Annotations()
DESTRUCTIVE = Annotations(destructive=True)


class FullDisk(AuditStore):
    def append(self, records: Sequence[JsonObject]) -> Head:
        raise OSError(28, "No space left on device")


@asynccontextmanager
async def recording(
    state: Path, on_error: OnError = "refuse_destructive", kind: type[AuditStore] = AuditStore
) -> AsyncIterator[AuditLog]:
    log = AuditLog(kind(state, None, 10**9, 0), None, on_error)
    try:
        yield log
    finally:
        await log.aclose()


async def call(
    log: AuditLog,
    run: Function,
    arguments: Mapping[str, Any] | None = None,
    annotations: Annotations = HARMLESS,
    parameters: JsonObject = ANYTHING,
) -> ToolResult:
    tool = spec("t", parameters, annotations=annotations)
    catalog = await build_catalog([FunctionSource("here", {tool: run})])
    invoker = Invoker(Registry(), 60, 1000, "allow", audit=log)
    return await invoker.invoke(
        catalog, catalog.lookup("t"), arguments or {}, CONTEXT, principal=Principal("bot")
    )


def records(state: Path) -> list[dict[str, Any]]:
    verified(state)
    return [record for record in last_lines(state, 100) if record["event"] in ("call", "begun")]


@pytest.mark.requirement("RTE-13")
async def test_a_call_is_recorded_with_who_what_and_how_it_came_out(tmp_path: Path) -> None:
    async with recording(tmp_path) as log:
        await call(log, returning("done"), {"n": 1, "password": "x"})
    [record] = records(tmp_path)
    assert {key: record[key] for key in ("principal", "ask_id", "call_id", "tool", "source")} == {
        "principal": "bot",
        "ask_id": "ask_1",
        "call_id": "c1",
        "tool": "t",
        "source": "here",
    }
    assert record["arguments"] == {"n": 1, "password": "***"}
    assert (record["status"], record["error_code"], record["attempts"]) == ("ok", None, 1)
    assert record["identity"]["user"] == "u1"


@pytest.mark.requirement("RTE-13")
async def test_a_refused_and_a_failed_call_are_recorded_with_their_codes(tmp_path: Path) -> None:
    async def fails(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        raise ToolError("no", code="shop.closed")

    schema = {"type": "object", "required": ["n"]}
    async with recording(tmp_path) as log:
        await call(log, fails)
        await call(log, returning("x"), parameters=schema)
    codes = [(each["status"], each["error_code"], each["attempts"]) for each in records(tmp_path)]
    assert codes == [("error", "shop.closed", 1), ("error", "tool.invalid_arguments", 0)]


async def test_a_call_that_was_cancelled_is_recorded(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def hangs(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        begun.set()
        return await asyncio.Event().wait()

    async with recording(tmp_path) as log:
        task = asyncio.create_task(call(log, hangs))
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
    assert [each["status"] for each in records(tmp_path)] == ["cancelled"]


async def test_a_tool_that_changes_its_arguments_does_not_change_the_record(tmp_path: Path) -> None:
    async def hides(arguments: Any, context: HandlerContext) -> object:
        arguments.clear()
        return "ok"

    async with recording(tmp_path) as log:
        await call(log, hides, {"n": 1})
    assert records(tmp_path)[0]["arguments"] == {"n": 1}


@pytest.mark.requirement("RTE-13")
async def test_a_destructive_call_is_on_the_disk_before_the_tool_runs(tmp_path: Path) -> None:
    seen: list[str] = []

    async def wipes(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        seen.extend(each["event"] for each in records(tmp_path))
        return "gone"

    async with recording(tmp_path) as log:
        await call(log, wipes, annotations=DESTRUCTIVE)
    assert seen == ["begun"]
    assert [each["event"] for each in records(tmp_path)] == ["begun", "call"]


@pytest.mark.requirement("RTE-13")
@pytest.mark.parametrize(
    ("on_error", "destructive", "harmless"),
    [
        ("go_on", "ok", "ok"),
        ("refuse_destructive", "tool.not_recorded", "ok"),
        ("refuse", "tool.not_recorded", "tool.not_recorded"),
    ],
)
async def test_what_runs_on_a_full_disk_is_for_the_operator_to_say(
    tmp_path: Path, on_error: OnError, destructive: str, harmless: str
) -> None:
    ran: list[str] = []

    async def runs(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        ran.append(context.call_id)
        return None

    async with recording(tmp_path, on_error, FullDisk) as log:
        results = [await call(log, runs, annotations=DESTRUCTIVE), await call(log, runs)]
    assert [result.error_code or "ok" for result in results] == [destructive, harmless]
    assert len(ran) == [destructive, harmless].count("ok")


async def test_what_is_no_json_ends_no_call(tmp_path: Path) -> None:
    async with recording(tmp_path) as log:
        result = await call(log, returning("x"), {"n": object()})
    assert result.call_id == "c1"
    assert json.dumps(records(tmp_path)[0]["arguments"]) == '"[no JSON]"'
