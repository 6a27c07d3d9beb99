"""Many asks at the same time against a real upstream: right answers, no cross-talk, no growth."""

import asyncio
import gc
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream, question_of
from tests.support import chat_profile, opened, write_handler

WHO = """
def execute(args, context):
    return f"{context.identity.user}:{args['number']}:{context.ask_id}"
"""


def who_am_i(root: Path) -> None:
    write_handler(
        root,
        "identity.who",
        description="Tells who asks.",
        parameters={
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
        },
        code=WHO,
    )


def reply_to(request: dict[str, Any]) -> Reply:
    """Search, then call with the question's number, then answer with the tool's result."""
    number = question_of(request).rsplit(" ", 1)[-1]
    results = [m for m in request["messages"] if m["role"] == "tool"]
    match len(results):
        case 0:
            return reply_calls(("tool_search", {"query": "who asks"}))
        case 1:
            return reply_calls(("identity__who", {"number": int(number)}))
        case _:
            return reply_text(str(results[-1]["content"]))


def config(root: Path, base_url: str) -> str:
    return (
        f'[handlers]\npaths = ["{root}"]\n'
        "[skills]\ntool_search_enabled = true\n"
        "[runtime]\nmax_concurrent_asks = 300\n" + chat_profile(base_url)
    )


async def ask_number(runtime: Runtime, number: int) -> None:
    """Ask one and check that everything in its answer is its own."""
    events: list[Any] = []
    request = AskRequest(f"who is number {number}", identity=Identity(user=f"u{number}"))
    result = await runtime.ask(request, events.append)
    assert result.outcome == "answered"
    assert result.text == f"u{number}:{number}:{result.ask_id}"
    assert {event.ask_id for event in events} == {result.ask_id}


@pytest.mark.requirement("ASK-1")
@pytest.mark.requirement("TS-2")
async def test_two_hundred_asks_at_once_get_their_own_answers_and_identities(
    tmp_path: Path,
) -> None:
    who_am_i(tmp_path / "tools")
    async with (
        Upstream(reply_to, keep=False) as upstream,
        opened(tmp_path, config(tmp_path / "tools", upstream.base_url)) as runtime,
    ):
        await asyncio.gather(*(ask_number(runtime, number) for number in range(200)))
        assert runtime.asks == 0
        assert [g["asks"] for g in runtime.status()["generations"]] == [0]


async def ask_in_waves(runtime: Runtime, numbers: range) -> None:
    for start in numbers[::50]:
        await asyncio.gather(*(ask_number(runtime, start + n) for n in range(50)))


async def least_kilobytes(runtime: Runtime, first: int) -> float:
    """The least that is held after any of five waves: what waits to be written changes with the moment."""
    held = []
    for start in range(first, first + 250, 50):
        await ask_in_waves(runtime, range(start, start + 50))
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0] / 1024)
    return min(held)


@pytest.mark.soak
@pytest.mark.requirement("ASK-1")
async def test_memory_after_five_thousand_asks_is_that_after_five_hundred(tmp_path: Path) -> None:
    who_am_i(tmp_path / "tools")
    async with (
        Upstream(reply_to, keep=False) as upstream,
        opened(tmp_path, config(tmp_path / "tools", upstream.base_url)) as runtime,
    ):
        tracemalloc.start()
        try:
            await ask_in_waves(runtime, range(250))
            early = await least_kilobytes(runtime, 250)
            await ask_in_waves(runtime, range(500, 4750))
            late = await least_kilobytes(runtime, 4750)
        finally:
            tracemalloc.stop()
    print(json.dumps({"kB after 500": round(early), "kB after 5000": round(late)}))
    assert late <= early * 1.05
