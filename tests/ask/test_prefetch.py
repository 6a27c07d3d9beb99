"""Tools that run before the first turn."""

from pathlib import Path
from typing import Any

import pytest

from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import PrefetchFinished, TurnStarted
from tests.support import ask, chat_profile, opened, write_handler

NEEDS_ARGUMENT = {
    "type": "object",
    "properties": {"zone": {"type": "string"}},
    "required": ["zone"],
}


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    root = tmp_path / "tools"
    write_handler(root, "clock", code="def execute(a, c):\n    return 'twelve\\no clock'\n")
    write_handler(root, "news", code="async def execute(a, c):\n    return {'top': '新闻'}\n")
    write_handler(root, "broken", code="def execute(a, c):\n    raise RuntimeError('boom')\n")
    write_handler(root, "unimportable", code="import nothing_of_that_name\n")
    write_handler(root, "picky", parameters=NEEDS_ARGUMENT)
    write_handler(
        root,
        "hanging",
        code="import asyncio\nasync def execute(a, c):\n    await asyncio.Event().wait()\n",
    )
    write_handler(
        root,
        "selfcancelled",
        code="import asyncio\nasync def execute(a, c):\n    raise asyncio.CancelledError\n",
    )
    write_handler(root, "other")
    return root


def config(tools: Path, upstream: Upstream, names: list[str], **skills: Any) -> str:
    lines = [f"{key} = {str(value).lower()}" for key, value in skills.items()]
    return "\n".join(
        [
            f'[handlers]\npaths = ["{tools}"]\nbundled = false',
            f"[skills]\nprefetch_tools = {names}\nprefetch_timeout_s = 0.2",
            *lines,
            chat_profile(upstream.base_url),
        ]
    )


def system_texts(request: dict[str, Any]) -> list[str]:
    return [m["content"] for m in request["messages"] if m["role"] == "system"]


@pytest.mark.requirement("PRE-1")
@pytest.mark.requirement("PRE-2")
@pytest.mark.parametrize("search", [False, True])
async def test_results_stand_in_one_message_in_configured_order_and_their_tools_vanish(
    tmp_path: Path, tools: Path, search: bool
) -> None:
    replies: list[Reply] = [reply_calls(("other", {})), reply_text("done")]
    async with Upstream(replies) as upstream:
        text = config(tools, upstream, ["news", "clock"], tool_search_enabled=search)
        async with opened(tmp_path, text) as runtime:
            asked = await ask(runtime, "go")
    for request in upstream.requests:
        (prefetched,) = [t for t in system_texts(request) if "twelve" in t]
        assert prefetched.endswith('- news: {"top":"新闻"}\n- clock: twelve\n  o clock')
    bodies = [body.decode() for body in upstream.bodies]
    assert not any('"name":"clock"' in b or '"name":"news"' in b for b in bodies)
    for text in system_texts(upstream.requests[0]):
        assert "clock\n" not in text
    assert asked.of(PrefetchFinished)[0].ok == ("news", "clock")


@pytest.mark.requirement("PRE-1")
@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("broken", "tool.failed"),
        ("unimportable", "tool.import_failed"),
        ("picky", "tool.invalid_arguments"),
        ("hanging", "tool.timeout"),
        ("selfcancelled", "tool.failed"),
    ],
)
async def test_a_failure_is_typed_and_its_tool_stays_visible_in_every_turn(
    tmp_path: Path, tools: Path, name: str, code: str, search: bool
) -> None:
    pinned = "other" if search else name
    replies: list[Reply] = [reply_calls(("other", {}), ("other", {})), reply_text("done")]
    async with Upstream(replies) as upstream:
        text = config(tools, upstream, [name, "clock"], tool_search_enabled=search)
        async with opened(tmp_path, text) as runtime:
            asked = await ask(runtime, "go")
    (finished,) = asked.of(PrefetchFinished)
    assert (finished.ok, dict(finished.failed)) == (("clock",), {name: code})
    assert all(name in turn.exposed for turn in asked.of(TurnStarted))
    assert len(asked.of(TurnStarted)) == 2
    assert pinned in {"other", name}
    assert not any("boom" in text for text in system_texts(upstream.requests[-1]))


@pytest.mark.requirement("PRE-1")
async def test_a_name_that_is_forbidden_fails_like_one_that_does_not_exist(
    tmp_path: Path, tools: Path
) -> None:
    denied = '[access.rules.r]\ndeny = ["clock"]\n'
    async with Upstream([reply_text("hi")]) as upstream:
        text = config(tools, upstream, ["clock", "nowhere"])
        async with opened(tmp_path, text + denied) as runtime:
            asked = await ask(runtime, "go")
    (finished,) = asked.of(PrefetchFinished)
    assert dict(finished.failed) == {"clock": "tool.not_found", "nowhere": "tool.not_found"}


@pytest.mark.requirement("PRE-1")
@pytest.mark.parametrize("search", [False, True])
async def test_without_hiding_a_prefetched_tool_stays_callable(
    tmp_path: Path, tools: Path, search: bool
) -> None:
    async with Upstream([reply_text("hi")]) as upstream:
        text = config(
            tools, upstream, ["clock"], prefetch_tools_hide=False, tool_search_enabled=search
        )
        async with opened(tmp_path, text) as runtime:
            asked = await ask(runtime, "go")
    assert "clock" in asked.of(TurnStarted)[0].exposed


@pytest.mark.requirement("PRE-1")
async def test_two_asks_each_get_their_own_prefetch(tmp_path: Path, tools: Path) -> None:
    async with Upstream([reply_text("a"), reply_text("b")]) as upstream:
        async with opened(tmp_path, config(tools, upstream, ["clock"])) as runtime:
            await ask(runtime, "one")
            await ask(runtime, "two")
    assert [sum("twelve" in t for t in system_texts(r)) for r in upstream.requests] == [1, 1]
