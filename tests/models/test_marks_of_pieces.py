"""Every way to mark the pieces of two calls: none runs without what came for it, or with another's."""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from session_runtime.models.base import CUT_OFF
from tests.models.chat_chunks import piece, read, stream

Call = tuple[str, str]
A, B = '{"q": "a"}', '{"t": {"b": ["c"]}}'
BOTH: tuple[Call, Call] = (("web__search", A), ("mail__send", B))
PAIRS: tuple[tuple[Call, Call], ...] = (
    BOTH,
    (("web__search", A), ("web__search", B)),
    (("web__search", ""), ("mail__send", B)),
    (("mail__send", B), ("web__search", "")),
    (("mail__send", B), ("web__search", "{}")),
    (("web__search", ""), ("web__search", B)),
)
TOOLS = {"web.search", "mail.send"}

Index = Callable[[int, int], Any]
INDEXES: dict[str, Index] = {
    "right": lambda call, count: call,
    "digits": lambda call, count: str(call),
    "a word": lambda call, count: f"tool_{call}",
    "counting": lambda call, count: count,
    "zero": lambda call, count: 0,
    "none": lambda call, count: None,
}
Id = Callable[[int, bool], str | None]
IDS: dict[str, Id] = {
    "each": lambda call, first: f"c{call}",
    "first": lambda call, first: f"c{call}" if first else None,
    "first, else blank": lambda call, first: f"c{call}" if first else "",
    "the same": lambda call, first: "c",
    "none": lambda call, first: None,
}
Way = tuple[str, str, str, int, str]
NAMES = ("first", "each", "first with arguments")
PARTS = (1, 2, 3)
ORDERS = ("one behind the other", "by turns")
WAYS = list(itertools.product(INDEXES, IDS, NAMES, PARTS, ORDERS))


def pieces_of(
    at: int, call: Call, names: str, parts: int
) -> Iterator[tuple[int, bool, str | None, str]]:
    """Of one call: its number, whether it is the first piece, the name, the arguments."""
    name, arguments = call
    size = -(-len(arguments) // parts) or 1
    texts = [arguments[begin : begin + size] for begin in range(0, len(arguments), size)]
    if names != "first with arguments" or not texts:
        texts.insert(0, "")
    for number, text in enumerate(texts):
        yield at, number == 0, name if number == 0 or names == "each" else None, text


def streamed(calls: tuple[Call, Call], way: Way) -> Any:
    index, ids, names, parts, order = way
    both = [list(pieces_of(at, call, names, parts)) for at, call in enumerate(calls)]
    turns = [each for pair in itertools.zip_longest(*both) for each in pair if each is not None]
    ordered = turns if order == "by turns" else [*both[0], *both[1]]
    marked = [
        [piece(name, text, index=INDEXES[index](at, count), id=IDS[ids](at, first))]
        for count, (at, first, name, text) in enumerate(ordered)
    ]
    return read(stream(*marked, reason="tool_calls"))


def named(calls: tuple[Call, Call]) -> set[Call]:
    return {(name.replace("__", "."), arguments) for name, arguments in calls}


def would_run(reply: Any) -> Iterator[tuple[str, str]]:
    """The calls of tools that the ask would run, as far as their arguments decide that."""
    for call in reply.calls:
        try:
            values = json.loads(call.arguments or "{}")
        except ValueError:
            continue
        is_tool = call.name in TOOLS
        if is_tool and isinstance(values, dict) and (values or reply.finish_reason not in CUT_OFF):
            yield call.name, call.arguments


def blurred(way: Way) -> bool:
    """Whether all pieces of both calls are marked alike."""
    return way[0] in ("zero", "none") and way[1] == "the same"


def says(way: tuple[object, ...]) -> str:
    return " / ".join(map(str, way))


@pytest.mark.requirement("ASK-3")
@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize("way", WAYS, ids=says)
def test_no_call_runs_without_its_arguments_or_with_those_of_another(way: Way) -> None:
    for calls in PAIRS:
        assert set(would_run(streamed(calls, way))) <= named(calls), calls


PLACED = [way for way in WAYS if way[0] in ("right", "digits", "a word")]
IN_ORDER = [way for way in WAYS if way[4] == ORDERS[0] and way not in PLACED and not blurred(way)]


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("way", [*PLACED, *IN_ORDER], ids=says)
def test_calls_with_a_place_of_their_own_or_one_behind_the_other_all_run(way: Way) -> None:
    assert set(would_run(streamed(BOTH, way))) == named(BOTH)
