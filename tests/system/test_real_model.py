"""Ten small tasks with a real model in each call mode, with tool search and without; told as they went.

``SESSION_RUNTIME_TEST_MODEL_URL`` is the address of a server with the chat completions protocol, such as that
of llama.cpp (``http://127.0.0.1:8080/v1``), ``SESSION_RUNTIME_TEST_MODEL`` the name of its model. How many
tasks a model does is printed; what must hold whatever it does is asserted.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from session_runtime.types import Message, TextDelta, ToolStarted, TurnStarted
from tests.support import Asked, ask, chat_profile, opened, write_handler

URL = os.environ.get("SESSION_RUNTIME_TEST_MODEL_URL", "")
MODEL = os.environ.get("SESSION_RUNTIME_TEST_MODEL", "local")
MOST_S = 120.0

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not URL, reason="SESSION_RUNTIME_TEST_MODEL_URL names no server"),
]

TOOLS: Mapping[str, tuple[str, str]] = {
    "weather.current": ("Tells the current weather of a city.", "city"),
    "stocks.price": ("Tells the price of a stock by its ticker symbol.", "symbol"),
    "reminders.create": ("Creates a reminder with a text.", "text"),
    "music.play": ("Plays a song by its title.", "title"),
    "mail.find": ("Finds mails from a sender.", "sender"),
}
TASKS = (
    ("What is the weather in Berlin?", "weather.current", "berlin"),
    ("Is it raining in Oslo right now?", "weather.current", "oslo"),
    ("What does one share of NVDA cost?", "stocks.price", "nvda"),
    ("Give me the price of the stock with the symbol IBM.", "stocks.price", "ibm"),
    ("Remind me to water the plants.", "reminders.create", "plants"),
    ("Create a reminder: call Anna.", "reminders.create", "anna"),
    ("Play the song Yesterday.", "music.play", "yesterday"),
    ("I want to hear Imagine.", "music.play", "imagine"),
    ("Find mails from Bob.", "mail.find", "bob"),
    ("Did Carla write to me? Look into the mails.", "mail.find", "carla"),
)
CODE = "def execute(args, context):\n    return 'done: ' + ', '.join(map(str, args.values()))\n"
SETTINGS = """
[handlers]
bundled = false
paths = [{tools}]
[ask]
max_steps = 6
[skills]
prefetch_tools = []
tool_search_enabled = {search}
tool_search_always_loaded = []
tool_search_autoload = true
tool_search_explain = true
"""


@dataclass(frozen=True)
class Done:
    """What came of one task."""

    asked: Asked
    right: bool
    seconds: float


def arguments_of(asked: Asked, tool: str) -> str:
    """What the tool was called with, as one text in lower case."""
    started = [each for each in asked.of(ToolStarted) if each.name == tool]
    return json.dumps([dict(each.arguments) for each in started]).lower()


def check(asked: Asked) -> None:
    """It ended typed, what ran had been exposed, each call has its answer, no notation was shown."""
    result, exposed = asked.result, [set(each.exposed) for each in asked.of(TurnStarted)]
    assert result.error is None or result.error.code != "internal", result.error
    assert {each.name for each in asked.of(ToolStarted)} <= set().union(*exposed)
    check_pairs(result.new_messages)
    shown = "".join(each.text for each in asked.of(TextDelta))
    assert '{"calls"' not in shown
    assert not shown.startswith("<tool_call")


def check_pairs(messages: tuple[Message, ...]) -> None:
    made = [call.id for message in messages for call in message.tool_calls]
    assert made == [message.tool_call_id for message in messages if message.role == "tool"]


async def played(folder: Path, mode: str, search: bool) -> list[Done]:
    """All tasks, one after the other: such servers have one place."""
    for name, (description, parameter) in TOOLS.items():
        schema = {
            "type": "object",
            "properties": {parameter: {"type": "string"}},
            "required": [parameter],
        }
        write_handler(folder / "tools", name, description=description, parameters=schema, code=CODE)
    clock, done = asyncio.get_running_loop().time, list[Done]()
    profile = chat_profile(URL, model=MODEL, call_mode=mode, temperature=0.0, timeout_s=MOST_S)
    tools = json.dumps(str(folder / "tools"))
    text = SETTINGS.format(tools=tools, search=str(search).lower()) + profile
    async with opened(folder, text) as runtime:
        for question, tool, value in TASKS:
            begun = clock()
            asked = await ask(runtime, question, deadline_s=MOST_S)
            done.append(Done(asked, value in arguments_of(asked, tool), clock() - begun))
    return done


def told(mode: str, search: bool, done: list[Done]) -> str:
    """One line of the table."""
    results = [each.asked.result for each in done]
    ends = sorted({each.error.code if each.error else each.outcome for each in results})
    return (
        f"\n{mode:12} search {'on ' if search else 'off'}"
        f" right {sum(each.right for each in done):2} of {len(done)}"
        f" turns {sum(each.steps for each in results):3}"
        f" tokens {sum(each.usage.total_tokens for each in results):6}"
        f" seconds {sum(each.seconds for each in done):6.1f} ends {', '.join(ends)}"
    )


@pytest.mark.requirement("ASK-3")
@pytest.mark.requirement("TS-13")
@pytest.mark.parametrize("search", [False, True], ids=["all tools", "search"])
@pytest.mark.parametrize("mode", ["native", "text", "json_schema"])
async def test_whatever_a_real_model_does_an_ask_ends_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str, search: bool
) -> None:
    done = await played(tmp_path, mode, search)
    with capsys.disabled():
        print(told(mode, search, done), flush=True)
    assert len(done) == len(TASKS)
    for each in done:
        check(each.asked)
