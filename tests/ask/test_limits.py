"""Limits of an ask: each ends it with an outcome of its own."""

from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime import AskRequest, Message
from session_runtime.testing.replies import reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import ImagePart, TextDelta, TextPart
from tests.support import (
    HANGS,
    ask,
    calls,
    chat_profile,
    opened,
    says,
    scripted,
    tool_folder,
    write_handler,
)

SEARCH_OFF = "[skills]\nprefetch_tools = []\n"


@pytest.mark.requirement("ASK-8")
async def test_steps_run_out_with_a_typed_outcome(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "poll")
    replies = [calls(("poll", {"n": n})) for n in range(5)]
    limits = "[ask]\nmax_steps = 3\n"
    async with opened(
        tmp_path, tool_folder(tmp_path) + SEARCH_OFF + limits + scripted(tmp_path, *replies)
    ) as runtime:
        asked = await ask(runtime, "go")
    assert (asked.result.outcome, asked.result.steps) == ("limit", 3)
    assert asked.result.error is not None
    assert asked.result.error.code == "limit.steps"


@pytest.mark.requirement("ASK-8")
async def test_calling_on_after_the_call_limit_ends_the_ask(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "poll")
    replies = [calls(("poll", {"n": n})) for n in range(5)]
    limits = "[ask]\nmax_tool_calls = 2\n"
    async with opened(
        tmp_path, tool_folder(tmp_path) + SEARCH_OFF + limits + scripted(tmp_path, *replies)
    ) as runtime:
        asked = await ask(runtime, "go")
    assert asked.result.error is not None
    assert (asked.result.outcome, asked.result.error.code) == ("limit", "limit.calls")
    assert asked.result.steps == 3


@pytest.mark.requirement("ASK-8")
async def test_tokens_run_out_with_a_typed_outcome(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "poll")
    replies = [calls(("poll", {"n": n})) for n in range(5)]
    limits = "[ask]\nmax_total_tokens = 1\n"
    async with opened(
        tmp_path, tool_folder(tmp_path) + SEARCH_OFF + limits + scripted(tmp_path, *replies)
    ) as runtime:
        asked = await ask(runtime, "go")
    assert asked.result.error is not None
    assert (asked.result.error.code, asked.result.steps) == ("limit.tokens", 1)
    assert asked.result.usage.estimated


@pytest.mark.requirement("ASK-8")
async def test_the_deadline_ends_a_hanging_tool_and_the_ask(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "hang", code=HANGS)
    write_handler(tmp_path / "tools", "quick")
    script = scripted(tmp_path, calls(("hang", {}), ("quick", {})), says("never"))
    cancelled: list[str] = []
    async with opened(
        tmp_path,
        tool_folder(tmp_path) + SEARCH_OFF + script,
        resources={"cancelled": cancelled},
    ) as runtime:
        asked = await ask(runtime, "go", deadline_s=0.3)
    assert asked.result.error is not None
    assert (asked.result.outcome, asked.result.error.code) == ("limit", "limit.deadline")
    assert len(cancelled) == 1
    assert [m.role for m in asked.result.new_messages] == ["user", "assistant", "tool", "tool"]
    assert '{"got":{}}' in [m.content for m in asked.result.new_messages]


@pytest.mark.requirement("ASK-8")
async def test_tokens_of_blank_replies_count_and_an_image_counts_like_a_page(
    tmp_path: Path,
) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
    replies = [reply_text("", usage=usage), reply_text("hi", usage=usage)]
    async with Upstream(replies) as upstream:
        profile = chat_profile(upstream.base_url, max_retries=1)
        async with opened(tmp_path, SEARCH_OFF + profile) as runtime:
            asked = await ask(runtime, "go")
    assert (asked.result.usage.input_tokens, asked.result.usage.model_calls) == (2000, 2)

    image = ImagePart("data:image/png;base64," + "A" * 1_000_000)
    question = AskRequest(messages=[Message("user", (TextPart("what is it?"), image))])
    async with opened(tmp_path, SEARCH_OFF + scripted(tmp_path, says("a cat"))) as runtime:
        asked = await ask(runtime, question)
    assert asked.result.usage.input_tokens < 3_000


@pytest.mark.requirement("ASK-1")
@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("reason", "cut_off"),
    [
        ("MAX_TOKENS", "length"),
        ("max_tokens", "length"),
        ("model_length", "length"),
        ("SAFETY", "content_filter"),
        ("content-filter", "content_filter"),
        ("RECITATION", "content_filter"),
        ("abort", "length"),
    ],
)
async def test_a_reply_that_broke_off_is_known_by_the_words_of_any_family_of_services(
    tmp_path: Path, reason: str, cut_off: str, stream: bool
) -> None:
    write_handler(tmp_path / "tools", "poll")
    half = replace(reply_text('{"name": "poll", "argum'), finish_reason=reason)
    prose = replace(reply_text("It is sunny and"), finish_reason=reason)
    async with Upstream([half, prose]) as upstream:
        config = tool_folder(tmp_path) + chat_profile(upstream.base_url, stream=stream) + SEARCH_OFF
        async with opened(tmp_path, config) as runtime:
            empty, cut = await ask(runtime, "go"), await ask(runtime, "go")
    assert empty.result.error is not None
    code = "model.filtered" if cut_off == "content_filter" else "model.empty_answer"
    assert (empty.result.error.code, empty.of(TextDelta)) == (code, [])
    assert (cut.result.text, cut.result.cut_off) == ("It is sunny and", cut_off)
