"""Pieces of streamed calls, as hostile or careless servers send them."""

from typing import Any

import pytest

from session_runtime.models.call_parts import CallAssembly
from session_runtime.models.stream import read_usage
from session_runtime.types import ToolCall


def piece(arguments: str, **marks: Any) -> dict[str, Any]:
    name = marks.pop("name", None)
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {**marks, "function": function}


def gathered(*pieces: dict[str, Any]) -> tuple[ToolCall, ...]:
    assembly = CallAssembly()
    for each in pieces:
        assembly.add_piece(each)
    return assembly.calls(frozenset())


@pytest.mark.requirement("ASK-3")
def test_an_empty_object_in_place_of_nothing_is_replaced_by_the_arguments_that_follow() -> None:
    calls = gathered(piece("{}", index=0, id="a", name="t"), piece('{"q":1}', index=0))
    assert calls == (ToolCall("a", "t", '{"q":1}'),)
    assert gathered(piece("{}", index=0, id="a", name="t")) == (ToolCall("a", "t", "{}"),)


@pytest.mark.requirement("ASK-3")
def test_pieces_by_id_alone_find_their_call_again() -> None:
    calls = gathered(
        piece('{"q":', id="a", name="t"),
        piece('{"q":', id="b", name="t"),
        piece("1}", id="a"),
        piece("2}", id="b"),
    )
    assert calls == (ToolCall("a", "t", '{"q":1}'), ToolCall("b", "t", '{"q":2}'))


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize(
    "usage",
    [
        {},
        None,
        {"prompt_tokens": None},
        {"prompt_tokens": float("inf"), "completion_tokens": float("nan")},
        {"prompt_tokens": "many"},
    ],
)
def test_a_usage_that_counts_nothing_is_no_usage(usage: object) -> None:
    assert read_usage(usage) is None


def test_pieces_of_two_calls_at_one_index_are_told_apart_by_their_ids() -> None:
    parts = CallAssembly()
    for call_id, function in (
        ("a", {"name": "t"}),
        ("b", {"name": "t"}),
        ("a", {"arguments": '{"q":"a"}'}),
        ("b", {"arguments": '{"q":"b"}'}),
    ):
        parts.add_piece({"index": 0, "id": call_id, "function": function})
    calls = parts.calls(frozenset())
    assert [(call.id, call.arguments) for call in calls] == [
        ("a", '{"q":"a"}'),
        ("b", '{"q":"b"}'),
    ]


SAME_ID: dict[str, tuple[list[str], str]] = {
    "whole again": (['{"q":1}', '{"q":1}'], '{"q":1}'),
    "whole again with a blank": (['{"q":1}', '{"q": 1}'], '{"q": 1}'),
    "whole after an empty object": (["{}", '{"q":1}'], '{"q":1}'),
    "whole in another form": (['{"q":1}', '{"q":2}'], '{"q":2}'),
    "whole, then in pieces again": (['{"q":1}', '{"q"', ":2}"], '{"q":2}'),
    "in pieces": (['{"q"', ":1}"], '{"q":1}'),
    "in pieces, then nothing": (['{"q"', ":1}", ""], '{"q":1}'),
    "in pieces, then blanks": (['{"q"', ":1}", "\n"], '{"q":1}\n'),
}


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("way", SAME_ID)
def test_what_bears_the_id_of_a_call_is_never_another_call(way: str, index: int | None) -> None:
    pieces, arguments = SAME_ID[way]
    marks = {"id": "a", "name": "t", **({} if index is None else {"index": index})}
    assert gathered(*(piece(each, **marks) for each in pieces)) == (ToolCall("a", "t", arguments),)


@pytest.mark.requirement("ASK-3")
def test_another_name_under_the_id_of_a_call_does_not_make_a_call_of_it() -> None:
    calls = gathered(
        piece('{"q":1}', index=0, id="a", name="t"), piece('{"q":1}', index=0, id="a", name="u")
    )
    assert [call.id for call in calls] == ["a"]


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize(
    ("call_id", "found"),
    [(None, ['{"q": "a"}', '{"q": "b"}']), ("c0", ['{"q": "b"}'])],
    ids=["without an id it is another call", "with an id it is the same call again"],
)
def test_a_name_that_comes_again_behind_whole_arguments_begins_new_ones(
    call_id: str | None, found: list[str]
) -> None:
    assembly = CallAssembly()
    for arguments in ('{"q": "a"}', '{"q": "b"}'):
        assembly.add_piece({"id": call_id, "function": {"name": "probe", "arguments": ""}})
        assembly.add_piece({"id": call_id, "function": {"arguments": arguments[:5]}})
        assembly.add_piece({"id": call_id, "function": {"arguments": arguments[5:]}})
    assert [call.arguments for call in assembly.calls(frozenset())] == found


def test_a_name_that_comes_again_at_the_very_end_is_no_other_call() -> None:
    assembly = CallAssembly()
    for arguments in ('{"q": "a"}', ""):
        assembly.add_piece({"function": {"name": "probe", "arguments": arguments}})
    assert [call.arguments for call in assembly.calls(frozenset())] == ['{"q": "a"}']
