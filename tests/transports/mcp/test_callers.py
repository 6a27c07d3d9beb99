"""Calls of clients end once, however often they are told to, and nobody outlives the key that let him in."""

import asyncio
from pathlib import Path

import pytest

from session_runtime.registry.keyring import hash_of
from session_runtime.transports.mcp.callers import Caller, Entry
from session_runtime.transports.mcp.outcome import Outcome
from session_runtime.types import LOCAL, Principal
from tests.support import opened
from tests.transports.stub import key_of


async def test_a_call_that_ends_in_its_own_time_is_cancelled_only_once(tmp_path: Path) -> None:
    begun, cleaning, go_on, cleaned = (asyncio.Event() for _ in range(4))

    async def call() -> Outcome:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await go_on.wait()
            cleaned.set()
        raise AssertionError

    async with opened(tmp_path, "") as runtime:
        running = asyncio.create_task(runtime.callers.run(Caller(), "a.slow", call()))
        await begun.wait()
        runtime.callers.cancel()
        await cleaning.wait()
        runtime.callers.cancel()
        await asyncio.sleep(0)
        go_on.set()
        outcome = await running
    assert cleaned.is_set()
    assert outcome.text == (
        "The call was stopped because the daemon stops; it may have taken effect."
    )


@pytest.mark.requirement("NET-1d")
async def test_who_came_in_with_a_key_is_nobody_once_there_are_no_keys(tmp_path: Path) -> None:
    async with opened(tmp_path, "") as runtime:
        known = [
            runtime.callers.principal(entry)
            for entry in (
                runtime.callers.entry(LOCAL),
                Entry("bot", b"digest"),
                Entry("bot", None),
                Entry(LOCAL.name, b"digest"),
            )
        ]
    assert known == [LOCAL, None, None, None]


@pytest.mark.requirement("NET-1d")
async def test_who_came_in_without_a_key_or_with_another_one_is_nobody_once_keys_are_needed(
    tmp_path: Path,
) -> None:
    text = f'[http.keys.bot]\nhash = "{hash_of(key_of("bot"))}"\n'
    async with opened(tmp_path, text) as runtime:
        [(key, bot)] = runtime.keys().owners
        entries = (
            runtime.callers.entry(bot),
            Entry("bot", key),
            Entry("bot", b"another"),
            Entry(LOCAL.name, None),
        )
        known: list[Principal | None] = [*map(runtime.callers.principal, entries)]
    assert known == [bot, bot, None, None]
