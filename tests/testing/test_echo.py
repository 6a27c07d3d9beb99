"""The server that answers on its own, here and as a process."""

import asyncio
import json
import signal
import sys
from typing import Any

import pytest

from session_runtime.models.chat import ChatModel
from session_runtime.models.http import open_client
from session_runtime.testing.echo import echo
from session_runtime.testing.replies import ChatReply, Pace, reply_text
from session_runtime.types import Message
from tests.models.building import ask, profile, request


def said(question: Any, *turns: Any, tools: tuple[str, ...] = ()) -> ChatReply:
    body = {
        "messages": [{"role": "user", "content": question}, *turns],
        "tools": [{"type": "function", "function": {"name": name}} for name in tools],
    }
    reply = echo(body)
    assert isinstance(reply, ChatReply)
    return reply


def turn(name: str, result: str) -> tuple[dict[str, Any], dict[str, Any]]:
    call = {"id": "c0", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c0", "content": result},
    )


def test_the_tool_that_the_question_names_is_called_with_its_arguments() -> None:
    reply = said('call math.evaluate {"expression": "1+1"}', tools=("end", "math__evaluate"))
    assert [(call.name, call.arguments) for call in reply.calls] == [
        ("math__evaluate", '{"expression": "1+1"}')
    ]


def test_then_its_result_is_the_answer() -> None:
    turns = turn("math__evaluate", "2")
    assert said("call math.evaluate", *turns, tools=("math__evaluate",)).text == "2"


def test_a_tool_that_must_be_loaded_is_loaded_first() -> None:
    reply = said("call math.evaluate", tools=("tool_search",))
    assert json.loads(reply.calls[0].arguments) == {"query": "select:math.evaluate"}
    loaded = turn("tool_search", "{}")
    calls = said("call math.evaluate", *loaded, tools=("tool_search", "math__evaluate")).calls
    assert [call.name for call in calls] == ["math__evaluate"]


@pytest.mark.parametrize("turns", [(), turn("tool_search", "{}")])
def test_a_tool_that_is_not_there_is_said_to_be_missing(turns: tuple[Any, ...]) -> None:
    tools = ("tool_search",) if turns else ()
    assert said("call nothing", *turns, tools=tools).text == "there is no tool nothing"


def test_anything_else_is_echoed_with_the_pace_that_is_asked_for() -> None:
    assert said([{"type": "text", "text": "hello"}]).text == "echo: hello"
    reply = echo({"messages": []}, Pace(delay_s=1))
    assert isinstance(reply, ChatReply)
    assert (reply.text, reply.pace.delay_s) == ("echo: ", 1)


def test_a_request_on_the_other_wire_is_answered_alike() -> None:
    call = {"type": "function_call", "call_id": "c0", "name": "math__evaluate", "arguments": "{}"}
    body = {
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "call math.evaluate"}]},
            {"type": "reasoning", "summary": []},
        ],
        "tools": [{"type": "function", "name": "math__evaluate"}],
    }
    asked = echo(body)
    output = {"type": "function_call_output", "call_id": "c0", "output": "2"}
    answered = echo({**body, "input": [*body["input"], call, output]})
    assert isinstance(asked, ChatReply)
    assert isinstance(answered, ChatReply)
    assert [call.name for call in asked.calls] == ["math__evaluate"]
    assert answered.text == "2"
    assert echo({"input": "hello"}) == reply_text("echo: hello")


async def test_it_runs_as_a_process_of_its_own_until_a_signal_ends_it() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "session_runtime.testing.upstream", "--delay-ms", "0", "1"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    base_url = (await process.stdout.readline()).decode().strip()
    model = ChatModel(profile(base_url), open_client(base_url))
    reply, _ = await ask(model, request(Message("user", "hello")))
    await model.aclose()
    process.send_signal(signal.SIGTERM)
    assert (reply.text, await process.wait()) == ("echo: hello", 0)
