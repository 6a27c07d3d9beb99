"""The official Python client of OpenAI's interface, without any change to it, against a real runtime."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from session_runtime import Runtime
from session_runtime.registry.keyring import hash_of
from session_runtime.testing.replies import ChatReply, reply_calls, reply_error, reply_text
from session_runtime.testing.upstream import Replies, Upstream
from tests.support import chat_profile, opened, tool_folder, write_handler
from tests.system.test_daemon import daemon, working_config
from tests.transports.stub import bearer, key_of, serving

openai = pytest.importorskip("openai", reason="the official client is not installed")

QUESTION: list[Any] = [{"role": "user", "content": "What is 15% of 2480?"}]
NOTE = "def execute(args, context):\n    context.resources['ran'].append(args)\n    return 'gone'\n"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
KEYS = f"""
[http.keys.bot]
hash = "{hash_of(key_of("bot"))}"
act_for = ["tg-*"]
"""


@asynccontextmanager
async def client_of(
    folder: Path, replies: Replies, more: str = "", **options: Any
) -> AsyncIterator[tuple[Any, list[Any], Runtime]]:
    """A client of a runtime with one destructive and one harmless tool, and what these were called with."""
    ran: list[Any] = []
    tools = folder / "tools"
    write_handler(tools, "notes.delete", runtime={"destructive": True}, code=NOTE)
    write_handler(tools, "notes.touch", code=NOTE)
    options = {"api_key": key_of("bot"), **options}
    skills = "bundled = false\n[skills]\nprefetch_tools = []\n"
    async with Upstream(replies) as upstream:
        text = tool_folder(folder) + skills + chat_profile(upstream.base_url) + more
        async with (
            opened(folder, text, resources={"ran": ran}) as runtime,
            serving(runtime) as served,
            openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{served.port}/v1", **options) as client,
        ):
            yield client, ran, runtime


async def text_of(stream: Any) -> tuple[str, list[Any]]:
    chunks = [chunk async for chunk in stream]
    pieces = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    return "".join(pieces), chunks


@pytest.mark.requirement("NET-1e")
async def test_the_shipped_daemon_answers_with_a_tool_that_it_runs_itself(tmp_path: Path) -> None:
    async with (
        daemon(working_config(tmp_path)) as running,
        openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="none is needed") as client,
    ):
        models = [model.id async for model in client.models.list()]
        whole = await client.chat.completions.create(model=models[0], messages=QUESTION)
        streamed, chunks = await text_of(
            await client.chat.completions.create(
                model=models[0],
                messages=QUESTION,
                stream=True,
                stream_options={"include_usage": True},
            )
        )
    choice = whole.choices[0]
    assert "372" in choice.message.content
    assert (choice.finish_reason, choice.message.role) == ("stop", "assistant")
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens > 0
    assert whole.session_runtime["loaded_tools"] == ["math.evaluate"]
    assert streamed == choice.message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[-2:-1]] == ["stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


async def test_the_answer_of_one_request_is_the_history_of_the_next(tmp_path: Path) -> None:
    replies = [reply_text("Bonn.", usage=USAGE), reply_text("Sun.", usage=USAGE)]
    async with client_of(tmp_path, replies) as (client, _, _):
        messages: list[Any] = [
            {"role": "developer", "content": "Be short."},
            {"role": "user", "content": "Where?"},
        ]
        first = await client.chat.completions.create(model="main", messages=messages)
        messages += [first.choices[0].message, {"role": "user", "content": "And the weather?"}]
        second = await client.chat.completions.create(model="main", messages=messages)
    assert second.choices[0].message.content == "Sun."
    assert second.usage.prompt_tokens == 7


async def test_an_answer_that_the_service_cut_off_does_not_look_complete(tmp_path: Path) -> None:
    reply = ChatReply("Sun an", (), USAGE, "length")
    async with client_of(tmp_path, [reply]) as (client, _, _):
        answer = await client.chat.completions.create(model="main", messages=QUESTION)
    assert answer.choices[0].finish_reason == "length"
    assert answer.session_runtime["cut_off"] == "length"


@pytest.mark.requirement("RTE-9")
async def test_a_destructive_call_waits_and_runs_when_its_token_comes_back(tmp_path: Path) -> None:
    replies = [reply_calls(("notes__delete", {"id": 3})), reply_text("It is gone.")]
    async with client_of(tmp_path, replies) as (client, ran, _):
        asked = await client.chat.completions.create(model="main", messages=QUESTION)
        (pending,) = asked.session_runtime["pending"]
        before = list(ran)
        answer = await client.chat.completions.create(
            model="main",
            messages=[*QUESTION, asked.choices[0].message, {"role": "user", "content": "Yes."}],
            extra_body={"session_runtime": {"confirmations": [pending["token"]]}},
        )
    text = asked.choices[0].message.content
    assert 'notes.delete {"id": 3}' in text
    assert pending["token"] not in text
    assert (before, ran) == ([], [{"id": 3}])
    assert answer.choices[0].message.content == "It is gone."


@pytest.mark.requirement("NET-1e")
async def test_each_refusal_is_the_exception_that_the_client_has_for_it(tmp_path: Path) -> None:
    async with client_of(tmp_path, [reply_error(429, "slow down")], KEYS) as (client, _, _):

        async def refused(kind: type[Exception], use: Any = client, **request: Any) -> Any:
            with pytest.raises(kind) as caught:
                await use.with_options(max_retries=0).chat.completions.create(
                    **{"model": "main", "messages": QUESTION, **request}
                )
            return caught.value

        tool: Any = {"type": "function", "function": {"name": "t"}}
        await refused(openai.AuthenticationError, client.with_options(api_key=key_of("eve")))
        assert "tools: is not supported" in str(await refused(openai.BadRequestError, tools=[tool]))
        assert (await refused(openai.NotFoundError, model="x")).code == "model_not_found"
        assert (await refused(openai.PermissionDeniedError, user="eve")).param == "user"
        limited = await refused(openai.RateLimitError)
        assert limited.response.headers["retry-after"] == "1"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("x")


async def test_a_stream_that_breaks_off_is_an_error_and_not_an_answer(tmp_path: Path) -> None:
    replies = [reply_calls(("notes__touch", {}), text="Let me look."), reply_error(400, "no more")]
    async with client_of(tmp_path, replies) as (client, _, _):
        stream = await client.chat.completions.create(model="main", messages=QUESTION, stream=True)
        begun = await anext(stream)
        with pytest.raises(openai.APIError, match="no more"):
            await text_of(stream)
    assert begun.choices[0].delta.content == "Let "


async def test_a_request_whose_tools_have_run_is_not_repeated_by_the_client(tmp_path: Path) -> None:
    replies = [reply_calls(("notes__touch", {})), reply_error(500, "down")]
    replies += [reply_calls(("notes__touch", {})), reply_text("x")]
    async with client_of(tmp_path, replies, max_retries=2) as (client, ran, _):
        with pytest.raises(openai.InternalServerError, match="down"):
            await client.chat.completions.create(model="main", messages=QUESTION)
    assert ran == [{}]


async def test_a_request_of_which_nothing_ran_is_repeated(tmp_path: Path) -> None:
    replies = [reply_error(500, "down"), reply_text("up again")]
    async with client_of(tmp_path, replies, max_retries=1) as (client, _, _):
        answer = await client.chat.completions.create(model="main", messages=QUESTION)
    assert answer.choices[0].message.content == "up again"


@pytest.mark.requirement("NET-2b")
async def test_the_tools_are_those_of_the_key_and_of_the_user(tmp_path: Path) -> None:
    def exposed(request: Any) -> Any:
        return reply_text(
            json.dumps([tool["function"]["name"] for tool in request.get("tools", ())])
        )

    rules = '[access.rules.guests]\nusers = ["tg-9"]\ndeny = ["notes.touch"]\n'
    async with client_of(tmp_path, exposed, KEYS + rules) as (client, _, _):
        tools = {}
        for user in ("tg-1", "tg-9"):
            answer = await client.chat.completions.create(
                model="main", messages=QUESTION, user=user, extra_headers=bearer("bot")
            )
            tools[user] = json.loads(answer.choices[0].message.content)
    assert tools == {"tg-1": ["notes__delete", "notes__touch"], "tg-9": ["notes__delete"]}
