"""Tools of earlier turns take the places that there are, and leave some to the searches of this ask."""

from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest
from session_runtime.ask.sticky import load_again
from session_runtime.types import Message, ToolCall, ToolsLoaded
from tests.search.catalogues import session_of, tool
from tests.support import Asked, ask, calls, opened, says, scripted, tool_folder, write_handler

pytestmark = pytest.mark.requirement("TS-6")
OLDER, NEWEST = ("a", "b", "c", "d"), ("z",)


@pytest.mark.parametrize(
    ("most", "loaded"),
    [
        (None, ("a", "b", "c", "d", "z")),  # any number
        (13, ("a", "b", "c", "d", "z")),  # of eleven places six are
        (11, ("a", "b", "c", "z")),  # of nine places five are for a search and results.read
        (5, ("z",)),
        (4, ("z",)),
        (3, ()),
        (2, ()),
    ],
)
def test_the_newest_turn_goes_first_and_places_for_a_search_stay_free(
    most: int | None, loaded: tuple[str, ...]
) -> None:
    session = session_of(*map(tool, ("end", *OLDER, *NEWEST)), base=["end"])
    session.max_exposed = most
    assert load_again(session, [OLDER, NEWEST]) == session.loaded == loaded


def test_a_tool_that_cannot_be_loaded_takes_no_place() -> None:
    session = session_of(*map(tool, ("end", "a", "b")), base=["end"])
    session.max_exposed = 4
    assert load_again(session, [("a",), ("gone", "end", "gone")]) == ("a",)


def turn(number: int, names: tuple[str, ...]) -> list[Message]:
    made = [ToolCall(f"c{number}_{at}", name, "{}") for at, name in enumerate(names)]
    results = [Message("tool", "ok", tool_call_id=each.id) for each in made]
    return [Message("assistant", None, tuple(made)), *results]


async def asked_again(folder: Path, *replies: dict[str, Any]) -> Asked:
    for name in (*OLDER, *NEWEST, "new"):
        write_handler(folder / "tools", name)
    text = (
        f"{tool_folder(folder)}{scripted(folder, *replies)}max_tools = 5\n"
        "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"
        "tool_search_always_loaded = ['end']\ntool_search_sticky_turns = 2\n"
    )
    history = (Message("user", "hi"), *turn(1, OLDER), *turn(2, NEWEST))
    async with opened(folder, text) as runtime:
        return await ask(runtime, AskRequest("again", history=history))


async def test_a_search_still_loads_what_it_finds(tmp_path: Path) -> None:
    search = calls(("tool_search", {"query": "select:new"}))
    asked = await asked_again(tmp_path, search, calls(("new", {}), ("z", {})), says("Done."))
    assert [each.names for each in asked.of(ToolsLoaded)] == [("z",), ("new",)]
    results = [message for message in asked.result.new_messages if message.role == "tool"]
    assert [each.is_error for each in results] == [False] * 3
