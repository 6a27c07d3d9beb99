"""What a recovering model makes of a reply as a whole: its text, its calls, its thinking, its pieces."""

import pytest

from session_runtime.models.recovery import THINKING, Dialect
from session_runtime.models.recovery.beginning import HEAD_CHARS
from session_runtime.models.recovery.reading import MAX_TEXT_CHARS
from session_runtime.models.recovery.written import MAX_SECOND_LOOKS
from session_runtime.types import ToolCall
from tests.models.recovery.playing import called, played

CALL = '<tool_call>{"name": "end", "arguments": {}}</tool_call>'
FIELD = Dialect(thinking_field=THINKING)


@pytest.mark.requirement("ASK-6")
async def test_a_profile_can_leave_calls_in_texts_alone() -> None:
    reply, told = await played([CALL[:20], CALL[20:]], Dialect(calls=False))
    assert (reply.calls, reply.text, told) == ((), CALL, [CALL[:20], CALL[20:]])


@pytest.mark.requirement("ASK-6")
async def test_a_text_beside_real_calls_that_repeats_them_is_dropped() -> None:
    made = ToolCall("c0", "end", "{}")
    reply, told = await played([CALL], calls=(made,))
    assert (reply.calls, reply.text, told) == ((made,), "", [])


async def test_a_text_beside_real_calls_stays() -> None:
    made = ToolCall("c0", "end", "{}")
    reply, told = await played(["Bye."], calls=(made,))
    assert (reply.calls, reply.text, told) == ((made,), "Bye.", ["Bye."])


async def test_ordinary_text_is_told_piece_by_piece_as_it_comes() -> None:
    pieces = ["It ", "is ", "sunny ", "< 30 ", "{degrees} ", "[1]."]
    reply, told = await played(pieces)
    assert (reply.text, told) == ("".join(pieces), pieces)


@pytest.mark.parametrize(
    ("begin", "rest"),
    [
        ('{"city"', ': "Rome"}'),
        ('{"name": "Ada"', ', "born": 1815}'),
        ('[{"function": "sin"', ', "x": 1}]'),
        ("[1]", " says so"),
        ("<b>Rome</b>", " is sunny"),
        ("```py", "\nprint(1)\n```"),
        ("[" * HEAD_CHARS, "more"),
    ],
)
async def test_a_text_is_told_as_soon_as_it_cannot_become_an_envelope(
    begin: str, rest: str
) -> None:
    _, told = await played([*begin, rest])
    assert told[-1] == rest
    assert "".join(told) == begin + rest


async def test_of_an_envelope_no_more_is_held_back_than_could_be_read() -> None:
    pieces = [*["<tool_call>{"] * (MAX_TEXT_CHARS // 12 + 1), "the end"]
    reply, told = await played(pieces)
    assert (reply.text, told[-1], len(told)) == ("".join(pieces), "the end", 2)


async def test_the_end_of_thinking_is_found_across_pieces() -> None:
    _, told = await played(["Hmm. </th", "ink>", CALL])
    assert told == ["Hmm. "]


async def test_behind_empty_thinking_another_end_of_thinking_may_stand_before_calls() -> None:
    reply, told = await played(list(f"<think>\n</think>Hm.</think>{CALL}"))
    assert (called(reply), reply.text, "".join(told)) == ((("end", {}),), "", "Hm.")


@pytest.mark.parametrize("opening", ["<think>", "<thinking>", "[THINK]"])
async def test_thinking_is_kept_for_the_next_request_and_never_told(opening: str) -> None:
    closing = opening[0] + "/" + opening[1:]
    reply, told = await played([opening, "I wonder.", closing, "\n\n", "Sun", "ny."], FIELD)
    assert (reply.text, told) == ("Sunny.", ["Sun", "ny."])
    assert reply.extra == {"reasoning_content": "I wonder."}


async def test_thinking_that_the_service_told_apart_is_not_replaced() -> None:
    reply, _ = await played(["<think>a</think>b"], FIELD, extra={"reasoning_content": "c"})
    assert (reply.text, reply.extra) == ("b", {"reasoning_content": "c"})


async def test_thinking_without_an_end_is_no_answer() -> None:
    reply, told = await played(["<think>I wonder", " whether"], FIELD, finish_reason="length")
    assert (reply.text, told) == ("", [])


@pytest.mark.requirement("ASK-6")
async def test_half_an_envelope_is_no_answer_where_the_reply_was_cut_off() -> None:
    reply, told = await played([CALL, CALL[:-9]], finish_reason="length")
    assert (reply.calls, reply.text, told) == ((), "", [])


async def test_thinking_is_kept_beside_calls_that_were_written_behind_it() -> None:
    reply, _ = await played([f"<think>I am done.</think>{CALL}"], FIELD)
    assert (called(reply), reply.extra) == ((("end", {}),), {"reasoning_content": "I am done."})


@pytest.mark.parametrize(
    ("text", "finish_reason", "answer"),
    [
        ("I wonder.</think>\nSunny.", "stop", "Sunny."),
        ("<think>I wonder.</think>Sunny.", "stop", "Sunny."),
        ("Sunny at once.", "stop", "Sunny at once."),
        ("I wonder whether", "length", ""),
    ],
)
async def test_a_reply_that_begins_inside_of_the_thinking_shows_only_what_stands_behind_it(
    text: str, finish_reason: str, answer: str
) -> None:
    reply, told = await played(list(text), Dialect(begun=True), finish_reason=finish_reason)
    assert (reply.text, "".join(told)) == (answer, answer)


async def test_a_long_envelope_is_read_as_well() -> None:
    content = "x" * 100_000
    text = f"<function=files__write><parameter=content>{content}</parameter></function>"
    reply, told = await played([text])
    assert (called(reply), told) == ((("files.write", {"content": content}),), [])


@pytest.mark.requirement("ASK-6")
async def test_only_so_many_calls_of_a_text_may_be_broken() -> None:
    broken = '<tool_call>{"name": "end", "arguments": {"a": }}</tool_call>'
    reply, _ = await played([broken * MAX_SECOND_LOOKS])
    assert len(reply.calls) == MAX_SECOND_LOOKS
    reply, _ = await played([broken * (MAX_SECOND_LOOKS + 1)])
    assert (reply.calls, reply.text) == ((), broken * (MAX_SECOND_LOOKS + 1))


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (
            '<tool_call>{"name": "weather__today", "arguments": {"city": "Rome",}}</tool_call>',
            '{"city": "Rome",}',
        ),
        (
            '<tool_call>{"name": "weather__today", "arguments": {"city": "Ro}}</tool_call>',
            '{"city": "Ro}',
        ),
        (
            "<function=weather__today><parameter=city>a</parameter><parameter=city>b</parameter></function>",
            '{"city": "a", "city": "b"}',
        ),
        (
            "<tool_call>{'name': 'weather__today', 'arguments': {'city': 'Rome'}}</tool_call>",
            "{'city': 'Rome'}",
        ),
        ('<function=weather__today>{"days": NaN}</function>', '{"days": NaN}'),
    ],
)
async def test_arguments_that_are_broken_inside_of_an_envelope_are_passed_on_as_they_are(
    text: str, arguments: str
) -> None:
    reply, _ = await played([text])
    assert [(call.name, call.arguments) for call in reply.calls] == [("weather.today", arguments)]
