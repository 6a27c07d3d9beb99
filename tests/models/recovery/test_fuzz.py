"""No text makes the reading fail or take more than linear time, and none is lost on its way."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.models.recovery.half import Names, is_half
from session_runtime.models.recovery.held import HeldText
from session_runtime.models.recovery.reading import MAX_TEXT_CHARS, read
from session_runtime.models.recovery.thinking import split_begun, split_tagged
from tests.models.recovery.corpus import CALLS, TEXTS
from tests.models.recovery.playing import NAMES, played

PIECES = (
    "<tool_call>", "</tool_call>", "<function=", "<function=end>", "</function>", "<parameter=a>",
    "</parameter>", '<invoke name="end">', "</invoke>", "<function_calls>", "</function_calls>",
    "[TOOL_CALLS]", "[ARGS]", "<think>", "</think>", "```", "```json\n", "\n", " ", "{", "}", "[", "]",
    '"', ":", ",", '{"name": "end", "arguments": {}}', '{"tool_calls": [', '"name"', '"arguments"',
    "end", "\\", "\ud800", "NaN", "9" * 500, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
    "<seed:tool_call>", "</seed:tool_call>", '{"function_call": ', '"functions.end"',
    "[end(", "a='b'", ")", "<｜DSML｜invoke name=\"end\">", "<|channel|>", "to=end", "<|message|>", "<|end|>",
    "<start_function_call>", "call:end{", "a:<escape>b<escape>", "<end_function_call>",
    "<|python_tag|>", "<|tool_call_begin|>", "<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>",
)  # fmt: skip
TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=30).map("".join)
MUTATED = st.tuples(
    st.sampled_from([sample.text for sample in (*CALLS, *TEXTS)]),
    st.floats(0, 1),
    st.sampled_from(PIECES) | st.text(max_size=3),
).map(lambda t: t[0][: int(t[1] * len(t[0]))] + t[2] + t[0][int(t[1] * len(t[0])) :])


@pytest.mark.requirement("ASK-6")
@settings(max_examples=300, deadline=None)
@given(TEXT | MUTATED, st.data())
async def test_any_text_is_either_calls_and_not_told_or_told_as_it_is_answered(
    text: str, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    reply, told = await played(pieces)
    if reply.text:
        assert not reply.calls
        assert "".join(told) == reply.text
    elif not reply.calls:
        assert "".join(told) in text.rpartition("</think>")[0]


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXT, max_size=8), st.booleans())
def test_once_it_is_no_envelope_all_but_the_thinking_is_told(
    pieces: list[str], begun: bool
) -> None:
    told: list[str] = []
    held, text = HeldText(told.append, NAMES.has, begun=begun), "".join(pieces)
    for piece in pieces:
        held.add(piece)
    held.release()
    assert "".join(told) == (split_begun(text) if begun else split_tagged(text)).answer


GROWING = {
    "tags": '<tool_call>{"name":"end","arguments":{}}</tool_call>',
    "open tags": "<tool_call>",
    "broken tags": '<tool_call>{"name":"end","arguments":{"a":}}</tool_call>',
    "objects": '{"name":"end","arguments":{}}\n',
    "open objects": '{"name":{"arguments":',
    "brackets": "[",
    "quotes": '{"name": "\\"',
    "functions": "<function=end><parameter=a>",
    "invokes": '<invoke name="end"><parameter name="a">b</parameter></invoke>',
    "fences": "```json\n",
    "blanks": " ",
    "python": "[end(a='b', c=[1, {'d': 2}]), ",
    "python lists": "[end(a=[[",
    "python texts": "[end(a='",
    "messages": "<|channel|>analysis<|message|>x<|end|>",
    "open messages": "<|channel|>a<|message|>",
    "gemma": "<start_function_call>call:end{a:<escape>b<escape>}<end_function_call>",
    "gemma texts": "<start_function_call>call:end{a:<escape>",
    "closing tags": "</think",
    "thinking": "<think>",
    "keys": "<tool_call>end<arg_key>a</arg_key><arg_value>",
}


def cpu_seconds(text: str, step: int) -> float:
    """The best of three, for reading a text and for holding it back piece by piece."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        read(text, NAMES.has)
        is_half(text, Names(NAMES.has, NAMES.begins))
        held = HeldText(lambda told: None, NAMES.has)
        for at in range(0, len(text), step):
            held.add(text[at : at + step])
        held.release()
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize("unit", GROWING.values(), ids=GROWING)
@pytest.mark.parametrize("head", ["", "<tool_call>", "[TOOL_CALLS]", "x", "<think>"])
def test_eight_times_the_text_takes_no_more_than_a_few_times_eight_times_as_long(
    unit: str, head: str
) -> None:
    size = MAX_TEXT_CHARS // 8
    text = head + unit * (MAX_TEXT_CHARS // len(unit) - 1)
    short, long = cpu_seconds(text[:size], 16), cpu_seconds(text, 16)
    assert long < 30 * short + 0.01
