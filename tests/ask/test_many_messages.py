"""A conversation of very many messages holds up nobody else: it is gone through in threads."""

import threading
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest
from session_runtime.testing.replies import reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import Message
from tests.support import ask, chat_profile, opened

SEARCH_OFF = "[skills]\nprefetch_tools = []\ntool_search_enabled = false\n"


def watched_by(names: set[str]) -> type[Message]:
    """Messages that note which threads look at their roles."""

    class Watched(Message):
        def __getattribute__(self, name: str) -> Any:
            if name == "role":
                names.add(threading.current_thread().name)
            return super().__getattribute__(name)

    return Watched


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize(
    ("count", "threads"), [(1_001, {"reading a conversation", "writing a request"}), (10, set())]
)
async def test_they_are_checked_repaired_and_written_in_threads(
    tmp_path: Path, wire: str, count: int, threads: set[str]
) -> None:
    seen_by: set[str] = set()
    watched = watched_by(seen_by)
    history = tuple(watched("user", f"hi {at}") for at in range(count))
    async with (
        Upstream([reply_text("Done.")]) as upstream,
        opened(tmp_path, SEARCH_OFF + chat_profile(upstream.base_url, wire=wire)) as runtime,
    ):
        asked = await ask(runtime, AskRequest("now", history=history))
    assert asked.result.text == "Done."
    assert seen_by - {threading.current_thread().name} == threads
    assert all(f"hi {at}" in upstream.bodies[0].decode() for at in (0, count - 1))
