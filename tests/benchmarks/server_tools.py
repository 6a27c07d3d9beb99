"""What 1,000 tools over 10 MCP servers cost: to be there, and per call, beside the bare SDK client.

The servers are processes that play a script and answer at once. A call is one tool of one server, and
goes through everything that a call in an ask does: arguments, limits, breaker, audit, marking. Wall times
are medians in milliseconds. The counters of looked-up names are checked against what was called.
"""

import asyncio
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from report import options, show

from mcp import Client, StdioServerParameters
from session_runtime import AskRequest, Runtime
from session_runtime.handler import HandlerContext
from session_runtime.registry.spec import ToolSpec
from session_runtime.testing.mcp_servers.raw import raw_server
from session_runtime.testing.mcp_servers.script import Script
from tests.support import calls, says, scripted
from tests.system.server_config import server

PLAIN = "[handlers]\nbundled = false\n[skills]\nprefetch_tools = []\n"
ARGUMENTS = {"text": "hello"}
Call = Callable[[int], Awaitable[object]]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--servers", type=int, default=10)
    parser.add_argument("--tools", type=int, default=100, help="per server")
    parser.add_argument("--calls", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(measure(Path(folder), given))
    show(given, ["figure", "bare SDK client", "session-runtime", "ratio"], rows)


async def measure(folder: Path, given: Any) -> list[list[str | float]]:
    text = PLAIN + "[mcp]\nwait_s = 30.0\n"
    script = Script(tools=(f"many:{given.tools}",), era="handshake")
    text += "".join(server(f"s{number}", script) for number in range(given.servers))
    text += scripted(
        folder,
        calls(("s1.tool_1", ARGUMENTS), ("no.such", {}), ("s0.tool_1", ARGUMENTS)),
        says("done"),
    )
    (folder / "config.toml").write_text(text, "utf-8")
    bare_ready, bare_one, bare_many = await bare(script, given)
    started, used = time.perf_counter(), time.process_time()
    async with Runtime.open(folder / "config.toml", env={}, watch=False) as runtime:
        ready, cpu = time.perf_counter() - started, time.process_time() - used
        tools = [spec for spec in runtime.generation.catalog.specs if spec.origin == "mcp"]
        if len(tools) != given.servers * given.tools:
            sys.exit(f"{len(tools)} tools are there: {runtime.status()['servers']}")
        one = await one_by_one(calling(runtime, tools), given.calls)
        many = await fifty_at_once(calling(runtime, tools), given.calls)
        before = runtime.generation.invoker.lookups.counts()
        await check_counters(runtime, before)
    return [
        [
            f"all {len(tools)} tools there, s (bare: one server)",
            bare_ready,
            ready,
            ready / bare_ready,
        ],
        ["of this processor time here, s", "-", cpu, "-"],
        ["a call, one after the other, ms", bare_one, one, one / bare_one],
        ["a call, 50 at once, ms of the process", bare_many, many, many / bare_many],
    ]


async def bare(script: Script, given: Any) -> tuple[float, float, float]:
    """The same calls at one server, by the SDK's client alone."""
    program, args = raw_server(script)
    started = time.perf_counter()
    parameters = StdioServerParameters(command=program, args=list(args))
    async with Client(parameters, mode="legacy") as client:
        await client.list_tools()
        ready = time.perf_counter() - started

        async def call(number: int) -> object:
            return await client.call_tool(f"tool_{number % given.tools}", ARGUMENTS)

        return (
            ready,
            await one_by_one(call, given.calls),
            await fifty_at_once(call, given.calls),
        )


def calling(runtime: Runtime, tools: list[ToolSpec]) -> Call:
    generation = runtime.generation

    async def call(number: int) -> object:
        context = HandlerContext(call_id=str(number))
        spec = tools[number * 7 % len(tools)]
        result = await generation.invoker.invoke(generation.catalog, spec, ARGUMENTS, context)
        if result.status != "ok":
            sys.exit(f"a call failed: {result.content}")
        return result

    return call


async def one_by_one(call: Call, count: int) -> float:
    """The median of single calls, in milliseconds."""
    took = []
    for number in range(count):
        started = time.perf_counter()
        await call(number)
        took.append(time.perf_counter() - started)
    return statistics.median(took) * 1000


async def fifty_at_once(call: Call, count: int) -> float:
    """The time for all calls, by their number, in milliseconds."""
    room = asyncio.Semaphore(50)

    async def one(number: int) -> None:
        async with room:
            await call(number)

    started = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(count)))
    return (time.perf_counter() - started) / count * 1000


def state_of(runtime: Runtime, name: str) -> Any:
    return next(each for each in runtime.status()["servers"] if each.get("name") == name)


async def check_counters(runtime: Runtime, before: Any) -> None:
    """A hit, a name that does not exist and a tool of a dead server, each counted once."""
    os.kill(state_of(runtime, "s0")["pid"], signal.SIGKILL)
    async with asyncio.timeout(10):
        while state_of(runtime, "s0")["state"] == "ready":  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.001)
    await runtime.ask(AskRequest(text="go"))
    after = runtime.generation.invoker.lookups.counts()
    added = {name: after[name] - before[name] for name in after}
    if added != {"hit": 1, "unavailable": 1, "unknown": 1}:
        sys.exit(f"the counters of names are wrong: {added}")


if __name__ == "__main__":
    main()
