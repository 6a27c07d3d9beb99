"""What becomes of a text that broke off: nothing of an unfinished call is told, and data stays data."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.models.recovery.blanks import without_around
from tests.models.recovery.corpus import CALLS, TEXTS, Sample
from tests.models.recovery.playing import NAMES, played

KNOWN = '{"name": "weather__today", "arguments": {"ci'
HALVES = [
    KNOWN,
    f"```json\n{KNOWN}",
    f"```\n{KNOWN}",
    f"```json\n[{KNOWN}",
    "```json\n" + '{"name": "end", "arguments": {}}\n``',
    "```json\n" + '{"name": "end", "arguments": {}}',
    f'[{{"name": "end", "arguments": {{}}}}, {KNOWN}',
    f'{{"name": "end", "arguments": {{}}}}\n{KNOWN}',
    f'{{"tool_calls": [{KNOWN}',
    '{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "func',
    '{"role": "assistant", "content": nu',
    '{"tool_calls": [{"function": {"name": "no_such_tool", "arg',
    '{"id": "call_1", "type": "function", "function": {"name": "wea',
    '{"type": "funct',
    '{"function": "end", "parameters": "{\\"a',
    '{"tool": "send_mess',
    '{"name": "files.wri',
    '{"name": "w\\u0065a',
    '{"arguments": {"city": "Rome"}, "na',
    '{"function_call": {"name": "no_such_tool", "arg',
    '{"function_ca',
    '{"name": "functions.wea',
    '{"name": "funct',
    '{"na',
    "{",
    "```js",
    "```json\n<tool_call>{",
    '```xml\n<function=weather__today>\n<parameter=city>\nRo',
    '```xml\n<invoke name="wea',
    f"So it is.</think>\n{KNOWN}",
    f"<think>So it is.</think>\n```json\n{KNOWN}",
]  # fmt: skip
UNFINISHED = [
    '<tool_call>{"name": "weather__today", "arguments": {"city": "Ro',
    '<tool_call>\n{"name": "weather__today", "arguments": {"days": 1, ',
    '<tool_call>{"name": "weather__today", "arguments": {"detail": tr',
    '<tool_call>{"name": "weather__today"',
    '[weather__today(city="Ro',
    "[end(), weather__today(city='Rome'",
    '<｜DSML｜function_calls><｜DSML｜invoke name="weather__today"><｜DSML｜parameter name="city" str',
    '<|channel|>commentary to=functions.weather__today <|constrain|>json<|message|>{"ci',
    "<start_function_call>call:weather__today{city:<escape>Ro",
    '<|tool_call>call:weather__today{city:<|"|>Ro',
    '{"thought": "I should look.", "tool_calls": [{"name": "weather__today", "argu',
    '<tool_call>{"name": "no_such_tool", "arguments": {"it',
    '<tool_call><tool_call>{"name": "weather__today", "arguments": {"ci',
    '<TOOL_CALL>{"name": "weather__today", "arguments": {"ci',
    '\ufeff<tool_call>{"name": "weather__today", "arguments": {"ci',
    '{"name": "weather__today", "argu',
    '{"name": "weather__today", "arguments": {"city": "Rome"}',
    '[{"name": "weather__today", "arguments": {"city": "Rome"}},',
    '{"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather__today"',
    '<tool_call>{"name": "wea',
    '<tool_call>{"arguments": {"city": "Rome"}, "name": "end"',
    '<tool_call>{"name": "end", "arguments": {}}</tool_call><tool_call>{"name": "send_message",',
    '<tool_call>{"name": "end", "arguments": {}}</tool_call>\n<tool_c',
    "<tool_call>weather__today\n<arg_key>city</arg_key>\n<arg_value>Ro",
    "<tool_call>weather__today",
    '<|tool_call|>[{"name": "end", "arguments": {}}',
    '<|python_tag|>{"name": "weather__today", "parameters": {"city',
    '<function=weather__today>{"city": "Rome"',
    "<function=weather__today><parameter=city>Rome</function>",
    "<function=weather__to",
    '<invoke name="weather__today"><parameter name="city">Rome</parameter>',
    '<function_calls><invoke name="weather__today"><parameter name="ci',
    "<seed:tool_call><function=weather__today><parameter=city>Ro",
    "[TOOL_CALLS]weather__today",
    '[TOOL_CALLS][{"name": "end", "arguments": {}}, ',
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>end<｜tool▁sep｜>{",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.end:0<|tool_call_argument_begin|>{",
    '<think>Hm.</think>\n<tool_call>{"name": "weather__today", "arg',
    'So it is.</think>\n<tool_call>{"name": "weather__today", "arg',
]  # fmt: skip
DATA = [
    "```js\n",
    "<tool_call ",
    '{"name": "Ada", "arg',
    '{"name": "Ada Lovel',
    '{"name": "weather__today", "description": "Tells',
    '{"name": "weather__today", "arguments": [1, ',
    '{"city": "Rome", "temperat',
    '{"id": 7, "title": "The long',
    '{"type": "object", "prop',
    '{"type": "function", "function": {"name": "weather__today", "description": "Te',
    '{"content": "Once upon a t',
    '{"role": "user", "con',
    '{"role": "assistant", "content": "Hello th',
    '{"function": "sin", "x": 1',
    '[{"name": "end", "arguments": {}}, {"name": "Ada',
    '{"name": "end", "arguments": {}} is what I would wri',
    '{"tool_calls": [{"who": "Ada"',
    '{"tool_calls": 17, "other": 3',
    '[1, 2, {"name": "end"',
    '{"function_call": "end',
    '{"function_call": {"name": "end", "arguments": {}}, "tool_calls": [',
    '{"name": "functions.sin", "arg',
    '```json\n{"name": "Ada", "born": 18',
    '```json\n{"tool_calls": [{"function": {"name": "no_such_tool", "arg',
    "```python\nimport os\npri",
    '```xml\n<function=no_such_tool>\n<parameter=city>\nRo',
    "Let me look.\n" + KNOWN,
    "{weather} is a placeh",
    "# Heading\n\nIt is sunny and",
]  # fmt: skip


@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize("reason", ["length", "content_filter", "incomplete"])
@pytest.mark.parametrize("text", HALVES)
async def test_nothing_of_a_call_that_broke_off_is_told(text: str, reason: str) -> None:
    reply, told = await played(list(text), finish_reason=reason)
    behind = "".join(told).removeprefix("So it is.")
    assert (reply.calls, reply.text, behind) == ((), "", "")


@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize("reason", ["stop", "tool_calls", None, "length"])
@pytest.mark.parametrize("text", UNFINISHED)
async def test_calls_that_lack_their_end_are_not_told_whatever_the_reason_to_stop(
    text: str, reason: str | None
) -> None:
    reply, told = await played(list(text), finish_reason=reason)
    behind = "".join(told).removeprefix("So it is.")
    assert (reply.calls, reply.text, behind) == ((), "", "")


@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize("text", DATA)
async def test_data_and_code_that_broke_off_are_told_as_far_as_they_came(text: str) -> None:
    reply, told = await played(list(text), finish_reason="length")
    assert (reply.calls, reply.text, "".join(told)) == ((), text, text)


@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize("sample", CALLS, ids=lambda sample: sample.title)
async def test_calls_of_the_corpus_may_break_off_anywhere(sample: Sample) -> None:
    opened = sample.text.find("</think>") if not sample.text.startswith("<think>") else -1
    for end in range(opened + len("</think>") if opened > 0 else 1, len(sample.text)):
        reply, told = await played([sample.text[:end]], finish_reason="length")
        told = [each for each in told if not _is_prose(each)]
        assert (without_around(reply.text), told) == ("", []), end


def _is_prose(told: str) -> bool:
    """Whether it is the thinking that a service had opened, which nothing tells from an answer."""
    return not any(mark in told for mark in ("{", "<", "[", "`"))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([each.text for each in (*CALLS, *TEXTS)]), st.integers(1, 400), st.data())
async def test_what_broke_off_is_told_as_it_is_answered_or_not_at_all(
    text: str, end: int, data: st.DataObject
) -> None:
    text = text[:end]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    reply, told = await played(pieces, finish_reason="length")
    if reply.text:
        assert "".join(told) == reply.text
    else:
        assert all(map(_is_prose, told))


def test_the_beginning_of_a_name_is_known_as_it_is_and_on_the_wire() -> None:
    begun = [name for name in ("wea", "weather.t", "weather__", "Wea", "x") if NAMES.begins(name)]
    assert begun == ["wea", "weather.t", "weather__"]
