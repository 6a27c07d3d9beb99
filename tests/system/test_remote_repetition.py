"""A call that may have run is made again only where the operator says that this does no harm (RTE-8)."""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from session_runtime import Runtime
from session_runtime.generation import builder
from session_runtime.registry.invoke.pipeline import Invoker, Pauses
from session_runtime.testing.mcp_servers.raw_http import RawHttp
from session_runtime.testing.mcp_servers.script import Era, Fault, Script
from tests.support import ask, calls, opened, says
from tests.system.leftovers import nothing_left
from tests.system.server_config import server, table
from tests.system.test_remote_calls import ERAS, lines
from tests.system.test_servers import ALL_TOOLS, mcp, results, statuses, until

FAULTS: tuple[Fault, ...] = ("die_before", "die_after", "drop")
TOOL = {
    "name": "work",
    "description": "Works.",
    "inputSchema": {"type": "object", "properties": {"key": {"type": "string"}}},
    # what the server says about itself must not count
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False},
}
SAID: Mapping[str, str] = {
    "plain": "",
    "read_only": "read_only = true",
    "idempotent": "idempotent = true",
    "keyed": 'idempotency_key = "key"',
}


@dataclass(frozen=True)
class Case:
    """A server of its own, whose tool meets a fault when it is called first."""

    said: str
    fault: Fault
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.said}_{self.fault}"

    @property
    def executions(self) -> list[Any]:
        return lines(self.folder / self.name)

    def script(self, era: Era) -> Script:
        ran = str(self.folder / self.name)
        return Script(era=era, tools=(TOOL,), executions=ran, faults={"work": (self.fault,)})

    def tables(self, **where: Any) -> str:
        about = f"[mcp.servers.{self.name}.tools.work]\n{SAID[self.said]}\n"
        if self.fault == "drop":
            about += "idle_timeout_s = 0.5\n"
        return where.pop("table")(self.name, **where) + about


def cases(folder: Path) -> list[Case]:
    return [Case(said, fault, folder) for said in SAID for fault in FAULTS]


def model(folder: Path, all_: list[Case]) -> str:
    """A model that calls the tool of the server that is named to it."""
    scenes = [
        {"match": case.name, "replies": [calls((f"{case.name}.work", {})), says("done")]}
        for case in all_
    ]
    (folder / "script.json").write_text(json.dumps({"scenes": scenes}), "utf-8")
    return '[models.main]\nwire = "scripted"\nscript = "script.json"\nmax_retries = 0\n'


class Pausing:
    """What calls do between two attempts: they wait until all servers are there again."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.runtime: Runtime | None = None
        pauses = Pauses(self._sleep, lambda: 1.0)
        patch.setattr(builder, "Invoker", partial(Invoker, pauses=pauses))

    async def _sleep(self, seconds: float) -> None:
        assert seconds > 0
        assert self.runtime is not None
        runtime = self.runtime
        await asyncio.gather(*map(runtime.servers.refresh, statuses(runtime)))
        await until(lambda: {each["state"] for each in statuses(runtime).values()} == {"ready"})


def start_again(web: list[RawHttp], over: threading.Event) -> None:
    """What looks after the servers that listen: it starts them again when they have ended."""
    while not over.wait(0.01):
        for each in web:
            if each.has_ended:
                each.kill()
                each.start()


@contextmanager
def looked_after(scripts: list[Script]) -> Iterator[list[RawHttp]]:
    over = threading.Event()
    with ExitStack() as stack:
        web = [stack.enter_context(RawHttp(script)) for script in scripts]
        keeper = threading.Thread(target=start_again, args=(web, over))
        keeper.start()
        try:
            yield web
        finally:
            over.set()
            keeper.join()


async def carry_out(folder: Path, text: str, all_: list[Case], pausing: Pausing) -> dict[str, str]:
    """Make all calls, each in an ask of its own; gives what the model was told by each."""
    async with opened(folder, text + ALL_TOOLS + model(folder, all_)) as runtime:
        pausing.runtime = runtime
        asked = await asyncio.gather(*(ask(runtime, case.name) for case in all_))
    assert {each.result.outcome for each in asked} == {"answered"}
    return {case.name: results(each)[0] for case, each in zip(all_, asked, strict=True)}


def check(case: Case, told: str) -> None:
    ran = case.executions
    if case.said == "plain":
        assert len(ran) == 1, case
        assert "may have taken effect" in told, case
        return
    assert len(ran) == 2 or (case.fault == "drop" and len(ran) == 3), case
    assert "not tried" not in told
    assert "no instructions" in told, (case, told)
    keys = {json.dumps(each["arguments"]) for each in ran if "arguments" in each}
    assert len(keys) == 1, case
    assert all(bool(each["arguments"]) is (case.said == "keyed") for each in ran[1:])


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("era", ERAS)
async def test_over_pipes_no_call_that_may_have_run_is_made_again_unless_the_operator_allows_it(
    tmp_path: Path, era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_ = cases(tmp_path)
    pausing = Pausing(monkeypatch)
    text = mcp(*(case.tables(table=server, script=case.script(era)) for case in all_))
    with nothing_left():
        told = await carry_out(tmp_path, text, all_, pausing)
    for case in all_:
        check(case, told[case.name])


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("era", ERAS)
async def test_over_http_no_call_that_may_have_run_is_made_again_unless_the_operator_allows_it(
    tmp_path: Path, era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_ = cases(tmp_path)
    pausing = Pausing(monkeypatch)
    with nothing_left(), looked_after([case.script(era) for case in all_]) as web:
        tables = [
            case.tables(table=table, url=each.url) for case, each in zip(all_, web, strict=True)
        ]
        told = await carry_out(tmp_path, mcp(*tables), all_, pausing)
    for case in all_:
        check(case, told[case.name])
