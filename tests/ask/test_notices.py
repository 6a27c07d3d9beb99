"""Which calls are announced in which mode."""

from collections.abc import Sequence
from typing import Literal, get_args

import pytest

from session_runtime.ask.notices import Mode, call_notices, prefetch_notices
from session_runtime.registry.spec import Origin, ToolSpec


def spec(name: str, origin: Origin = "handler") -> ToolSpec:
    return ToolSpec(name, "", {"type": "object"}, origin, "s", name, "d")


ORDINARY = spec("weather")
SEARCH = spec("tool_search", "virtual")
AGENT = spec("researcher", "agent")
SEND = spec("send_message", "bundled")
Row = tuple[Mode, bool, Sequence[ToolSpec], tuple[str, ...]]


@pytest.mark.requirement("ASK-10")
@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize(
    ("mode", "announced"),
    [
        ("none", {}),
        ("agent", {AGENT}),
        ("tools", {ORDINARY, SEARCH, SEND, AGENT}),
        ("clean", {ORDINARY, SEARCH, AGENT}),
        ("all", {ORDINARY, SEARCH, SEND, AGENT}),
    ],
)
def test_each_mode_announces_its_kinds_of_calls(
    mode: Mode, announced: set[ToolSpec], silent: bool
) -> None:
    for tool in (ORDINARY, SEARCH, AGENT, SEND):
        expected = tool in announced and not (mode == "clean" and silent)
        assert call_notices(mode, silent, [tool]) == ((f"calling {tool.name}",) if expected else ())


@pytest.mark.requirement("ASK-10")
def test_calls_of_the_same_tool_in_one_turn_share_a_line_with_their_count() -> None:
    lines = call_notices("all", False, [ORDINARY, SEARCH, ORDINARY])
    assert lines == ("calling weather ×2", "calling tool_search")


@pytest.mark.requirement("ASK-10")
def test_prefetch_is_announced_in_tools_and_all_only() -> None:
    spoken: dict[Literal[True, False], list[str]] = {True: [], False: []}
    for mode in get_args(Mode):
        spoken[bool(prefetch_notices(mode, ["clock"]))].append(mode)
    assert spoken[True] == ["tools", "all"]
