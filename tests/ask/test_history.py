"""Histories as callers really keep them, made acceptable to every wire format."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.ask import history
from session_runtime.ask.history import LOST_RESULT
from session_runtime.types import Content, Message, ToolCall


def repair_history(messages: Sequence[Message]) -> tuple[Message, ...]:
    repaired, nothing = history.repair_history(messages)
    assert nothing == ()
    return repaired


def call(call_id: str, name: str = "weather") -> ToolCall:
    return ToolCall(call_id, name, "{}")


def result(call_id: str, text: str = "sunny") -> Message:
    return Message("tool", text, tool_call_id=call_id)


@pytest.mark.requirement("ASK-2")
def test_a_valid_history_is_returned_as_it_is() -> None:
    valid = (
        Message("user", "hi"),
        Message("assistant", None, (call("1"), call("2"))),
        result("1"),
        result("2", "rain"),
        Message("assistant", "done"),
    )
    assert repair_history(valid) == valid


@pytest.mark.requirement("ASK-2")
def test_a_call_without_a_result_gets_one_that_says_it_is_lost() -> None:
    broken = (Message("assistant", None, (call("1"), call("2"))), result("2"), Message("user", "?"))
    assert repair_history(broken) == (
        Message("assistant", None, (call("1"), call("2"))),
        result("1", LOST_RESULT),
        result("2"),
        Message("user", "?"),
    )


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize("empty", ["", ()])
def test_an_empty_result_stays_empty_and_only_none_is_said_to_be_lost(empty: Content) -> None:
    turn = (Message("assistant", None, (call("1"), call("2"))),)
    given = (
        *turn,
        Message("tool", empty, tool_call_id="1"),
        Message("tool", None, tool_call_id="2"),
    )
    assert repair_history(given) == (*turn, result("1", ""), result("2", LOST_RESULT))


@pytest.mark.requirement("ASK-2")
def test_orphan_and_second_results_are_dropped() -> None:
    broken = (
        result("0"),
        Message("assistant", None, (call("1"),)),
        result("1"),
        result("1", "again"),
        result("9"),
    )
    assert repair_history(broken) == (Message("assistant", None, (call("1"),)), result("1"))


@pytest.mark.requirement("ASK-2")
def test_results_behind_another_message_move_up_to_their_call() -> None:
    broken = (Message("assistant", None, (call("1"),)), Message("user", "well?"), result("1"))
    assert repair_history(broken) == (
        Message("assistant", None, (call("1"),)),
        result("1"),
        Message("user", "well?"),
    )


@pytest.mark.requirement("ASK-2")
def test_ids_used_twice_become_unique_with_their_results() -> None:
    turn = (Message("assistant", None, (call("call_0"),)), result("call_0"))
    assert repair_history((*turn, *turn)) == (
        *turn,
        Message("assistant", None, (call("call_0_2"),)),
        result("call_0_2"),
    )


@pytest.mark.requirement("ASK-2")
def test_messages_that_say_nothing_vanish_but_null_content_with_calls_stays() -> None:
    broken = (
        Message("assistant", None),
        Message("user", "  "),
        Message("assistant", None, (call("1", "tool_of_last_year"),)),
        result("1"),
    )
    assert repair_history(broken) == broken[2:]


IDS = st.sampled_from(["", "a", "b", "call_0"])
MESSAGES = st.one_of(
    st.builds(lambda t: Message("user", t), st.text(max_size=3) | st.none()),
    st.builds(lambda i, t: Message("tool", t, tool_call_id=i), IDS, st.text(max_size=3)),
    st.builds(
        lambda ids: Message("assistant", None, tuple(call(i) for i in ids)),
        st.lists(IDS, max_size=3),
    ),
)


@pytest.mark.requirement("ASK-2")
@given(st.lists(MESSAGES, max_size=8))
def test_whatever_comes_in_every_call_has_exactly_one_result_right_behind_it(
    messages: list[Message],
) -> None:
    repaired = repair_history(messages)
    position, seen = 0, set()
    while position < len(repaired):
        message = repaired[position]
        assert message.role != "tool"
        ids = [c.id for c in message.tool_calls]
        behind = repaired[position + 1 : position + 1 + len(ids)]
        assert [m.tool_call_id for m in behind] == ids
        assert seen.isdisjoint(ids)
        seen |= set(ids)
        position += 1 + len(ids)
    assert repair_history(repaired) == repaired


@pytest.mark.requirement("ASK-2")
@given(st.lists(MESSAGES, max_size=6), st.lists(MESSAGES, max_size=4))
def test_history_and_question_are_repaired_as_one_and_told_apart(
    earlier: list[Message], asked: list[Message]
) -> None:
    repaired, question = history.repair_history(earlier, asked)
    assert (*repaired, *question) == repair_history([*earlier, *asked])


@pytest.mark.requirement("ASK-2")
def test_a_question_given_as_messages_is_repaired_too() -> None:
    asked = (
        Message("user", "hi"),
        Message("assistant", None, (call("a"),)),
        Message("user", "well?"),
        result("zzz"),
    )
    assert history.repair_history((), asked) == (
        (),
        (asked[0], asked[1], result("a", LOST_RESULT), asked[2]),
    )


@pytest.mark.requirement("ASK-2")
def test_thousands_of_calls_with_the_same_id_are_told_apart_in_linear_time() -> None:
    turn = (Message("assistant", None, (call("call_0"),)), result("call_0"))
    repaired = repair_history(turn * 20_000)
    ids = [c.id for message in repaired for c in message.tool_calls]
    assert (len(set(ids)), ids[:2], ids[-1]) == (20_000, ["call_0", "call_0_2"], "call_0_20000")
