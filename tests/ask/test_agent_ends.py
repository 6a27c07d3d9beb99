"""How sub-agents end too early: what whoever called them reads of that, and of what there was before."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from session_runtime import AskEvent, AskRequest, AskResult
from session_runtime.ask.emitter import AgentEmitter
from session_runtime.testing.replies import Pace, Reply, reply_calls, reply_error, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import TextDelta, ToolFinished, ToolProgress
from tests.ask.agent_plays import CONFIG, SHARED, Play, calls, played, recorded
from tests.ask.sweeping import JumpingLoop
from tests.support import HANGS, Asked, chat_profile, opened, write_agent, write_handler

ALMOST_UP_S = 38.5
TIMED = f"{SHARED}timeout_s = 40.0\n"


def jump(by_s: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    loop.jumped_s += by_s


async def asked_until(folder: Path, play: Play, jumps: type[AskEvent] | None = None) -> Asked:
    """Ask, and let almost all the time of the agent go by when the first event of a kind comes."""
    events: list[AskEvent] = []

    def emit(event: AskEvent) -> None:
        events.append(event)
        if jumps is not None and isinstance(event, jumps) and jumps not in seen:
            seen.add(jumps)
            jump(ALMOST_UP_S)

    seen: set[type[AskEvent]] = set()
    config = CONFIG.format(tools=str(folder / "tools"), more="")
    async with Upstream(play) as upstream:
        config += chat_profile(upstream.base_url, timeout_s=1_000.0)
        async with opened(folder, config, resources={"cancelled": []}) as runtime:
            return Asked(await runtime.ask(AskRequest(text="go"), emit), events)


def codes(asked: Asked) -> Mapping[str, str | None]:
    return {each.name: each.error_code for each in asked.of(ToolFinished)}


@pytest.mark.requirement("ASK-11")
def test_an_agent_whose_tool_hangs_ends_in_time_with_what_it_had_written(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "shared", code=HANGS)
    write_agent(tmp_path / "tools", "writer", prompt="W", settings=TIMED)
    play = Play(
        {
            "": [calls("writer", task="x"), reply_text("Then by hand.")],
            "W": [reply_calls(("shared", {}), text="Half of it is done.")],
        }
    )
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        asked = runner.run(asked_until(tmp_path, play, ToolProgress))
    assert codes(asked) == {"shared": "tool.timeout", "writer": "agent.limit"}
    assert play.said("") == (
        "writer stopped before it was done: its time was up. Of its tool calls 0 of 1 succeeded. "
        "It had written: Half of it is done."
    )
    assert asked.result.text == "Then by hand."


@pytest.mark.requirement("ASK-11")
def test_an_agent_that_is_still_writing_ends_in_time_with_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def heard(self: AgentEmitter, text: str) -> None:
        told.append(text)
        if len(told) == 1:
            jump(ALMOST_UP_S)

    monkeypatch.setattr(AgentEmitter, "text", heard)
    write_agent(tmp_path / "tools", "writer", prompt="W", settings=TIMED)

    async def run() -> Asked:
        pace = Pace(step=asyncio.Semaphore(2))
        writing = reply_text("One two three four.", pace=pace)
        play.add("W", writing)
        return await asked_until(tmp_path, play)

    play = Play({"": [calls("writer", task="x"), reply_text("So be it.")], "W": []})
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        asked = runner.run(run())
    assert codes(asked) == {"writer": "agent.limit"}
    so_far = "".join(told)
    assert 0 < len(so_far) < len("One two three four.")
    assert play.said("").endswith(f"its time was up. It had written: {so_far.strip()}")


@pytest.mark.requirement("ASK-11")
async def test_an_agent_that_stops_gives_more_of_its_text_than_other_failures_say(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "shared")
    write_agent(tmp_path / "tools", "writer", prompt="W", settings=SHARED + "max_steps = 1\n")
    long = "word " * 700
    play = Play(
        {
            "": [calls("writer", task="x"), reply_text("Done.")],
            "W": [reply_calls(("shared", {}), text=long)],
        }
    )
    await played(tmp_path, play)
    assert play.said("").endswith(f"It had written: {long.strip()}")


SECRET = "invoice.internal.example"
FAULTS = [
    (reply_error(400, f"{SECRET} says no"), "model.refused", "will not help"),
    (reply_error(401, f"{SECRET} does not know you"), "model.unauthorized", "will not help"),
    (reply_error(404, f"no model at {SECRET}"), "model.refused", "will not help"),
    (reply_error(429, f"{SECRET} is busy"), "model.rate_limited", "later may help"),
    (reply_error(503, f"{SECRET} is down"), "model.unavailable", "later may help"),
    (
        reply_error(400, f"{SECRET}: context_length exceeded"),
        "model.context_too_long",
        "a smaller task",
    ),
]


@pytest.mark.requirement("ASK-11")
@pytest.mark.requirement("SEC-4")
@pytest.mark.parametrize(("fault", "code", "way_out"), FAULTS)
async def test_nothing_that_a_service_says_of_a_fault_reaches_the_model_that_called(
    tmp_path: Path, fault: Reply, code: str, way_out: str, caplog: pytest.LogCaptureFixture
) -> None:
    write_handler(tmp_path / "tools", "shared")
    write_agent(tmp_path / "tools", "writer", prompt="W", settings=SHARED)
    first = reply_calls(("shared", {}), text="Half of it.")
    play = Play({"": [calls("writer", task="x"), reply_text("A pity.")], "W": [first, fault]})
    asked = await played(tmp_path, play)
    assert codes(asked)["writer"] == "agent.failed"
    told = play.said("")
    assert told.startswith(f"writer could not go on ({code}): ")
    assert (way_out in told, told.endswith("It had written: Half of it.")) == (True, True)
    assert not any(word in json.dumps(play.requests[""]) for word in (SECRET, "127.0.0.1", "http"))
    assert SECRET in caplog.text


@pytest.mark.requirement("ASK-11")
async def test_a_fault_of_an_agents_agent_is_told_in_plain_words_too(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    write_agent(root, "a", prompt="A", settings='tools = ["b"]\n')
    write_agent(root, "b", prompt="B", settings='callers = ["a"]\n')
    play = Play(
        {
            "": [calls("a", task="x"), reply_text("Done.")],
            "A": [calls("b", task="y"), reply_text("b is out of order")],
            "B": [reply_error(500, SECRET)],
        }
    )
    record = await recorded(tmp_path, play)
    assert [(each.agent, each.error_code) for each in record.agents] == [
        ("a/b", "model.unavailable"),
        ("a", None),
    ]
    assert SECRET not in json.dumps(play.requests["A"]) + json.dumps(play.requests[""])


@pytest.mark.requirement("ASK-8")
def test_an_ask_whose_time_is_up_while_the_model_writes_ends_with_that(tmp_path: Path) -> None:
    events: list[AskEvent] = []

    def emit(event: AskEvent) -> None:
        events.append(event)
        if isinstance(event, TextDelta) and len(Asked(result, events).of(TextDelta)) == 1:
            jump(300)

    async def run() -> AskResult:
        writing = reply_text("One two three four.", pace=Pace(step=asyncio.Semaphore(2)))
        async with Upstream([writing]) as upstream:
            config = "[skills]\nprefetch_tools = []\n"
            config += chat_profile(upstream.base_url, timeout_s=1_000.0)
            async with opened(tmp_path, config) as runtime:
                return await runtime.ask(AskRequest(text="go"), emit)

    result = AskResult("", "failed")
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        result = runner.run(run())
    assert (result.outcome, result.error and result.error.code) == ("limit", "limit.deadline")
    assert result.text == "".join(each.text for each in Asked(result, events).of(TextDelta)) != ""
