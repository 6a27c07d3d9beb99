"""Call ids of a caller's history: what services refuse is replaced, and calls keep their results."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.ask.history import MAX_ID_CHARS, repair_history
from session_runtime.types import Message, ToolCall

ACCEPTED = re.compile(r"[!-~]{1,40}")


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id, "weather", "{}")


def turn(*ids: str) -> tuple[Message, ...]:
    """A message with these calls, and a result of each that names it."""
    results = (Message("tool", f"result of {i!r}", tool_call_id=i) for i in ids)
    return (Message("assistant", None, tuple(map(call, ids))), *results)


def repaired(*messages: Message) -> list[tuple[str, str | None]]:
    """For each call its id and its result."""
    history, _ = repair_history(messages)
    return list(pairs(history))


def pairs(history: Sequence[Message]) -> Sequence[tuple[str, str | None]]:
    results = {m.tool_call_id: m.content for m in history if m.role == "tool"}
    ids = [c.id for message in history for c in message.tool_calls]
    return [(each, str(results[each])) for each in ids]


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("call_0", "call_0"),
        ("functions.search:0", "functions.search:0"),
        ("x" * MAX_ID_CHARS, "x" * MAX_ID_CHARS),
        ("x" * 1_000_000, "x" * MAX_ID_CHARS),
        ("a b\nc\x00d", "a_b_c_d"),
        ("a\ud800", "a_"),
        ("调用1", "__1"),
        ("", "call"),
    ],
)
def test_an_id_that_services_refuse_is_replaced(sent: str, kept: str) -> None:
    assert repaired(*turn(sent)) == [(kept, f"result of {sent!r}")]


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        (("a\ud800", "a\ud801", "a_"), ["a_", "a__2", "a__3"]),
        (
            ("x" * 50, "x" * 51, "x" * 40),
            ["x" * 40, "x" * 32 + "_2", "x" * 32 + "_3"],
        ),
        (("", "call"), ["call", "call_2"]),
    ],
)
@pytest.mark.parametrize("turns", ["one", "several"])
def test_ids_that_become_the_same_are_told_apart_with_their_results(
    ids: tuple[str, ...], kept: list[str], turns: str
) -> None:
    messages = turn(*ids) if turns == "one" else [m for i in ids for m in turn(i)]
    expected = [(new, f"result of {old!r}") for new, old in zip(kept, ids, strict=True)]
    assert repaired(*messages) == expected


@pytest.mark.requirement("ASK-2")
def test_a_call_never_gets_the_result_of_another_whose_id_looks_alike() -> None:
    both, _, of_second = turn("a\ud800", "a\ud801")
    ids = repaired(both, of_second)
    assert ids == [
        ("a_", "The result of this call was not recorded."),
        ("a__2", "result of 'a\\ud801'"),
    ]


IDS = st.text(st.sampled_from("ab_2\ud800\ud801\x00好 "), max_size=4) | st.sampled_from(
    ["x" * 39, "x" * 40, "x" * 41, "x" * 32 + "_2", "call", "call_2"]
)


@pytest.mark.requirement("ASK-2")
@given(st.lists(st.lists(IDS, min_size=1, max_size=4, unique=True), max_size=6))
def test_whatever_the_ids_are_services_accept_them_and_each_call_keeps_its_result(
    turns: list[list[str]],
) -> None:
    history, _ = repair_history([message for ids in turns for message in turn(*ids)])
    found = pairs(history)
    assert [result for _, result in found] == [f"result of {i!r}" for ids in turns for i in ids]
    assert len({each for each, _ in found}) == len(found)
    assert all(ACCEPTED.fullmatch(each) for each, _ in found)
    assert repair_history(history) == (history, ())


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize("mark", ["", "x" * 60])
def test_thousands_of_ids_that_are_cut_to_the_same_are_told_apart_in_linear_time(mark: str) -> None:
    ids = [f"{mark}{number}" for number in range(20_000)]
    history, _ = repair_history([*turn(*ids), *turn(*ids)])
    assert len({c.id for message in history for c in message.tool_calls}) == 40_000
