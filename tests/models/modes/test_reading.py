"""Replies in the form of mode ``json_schema``: what they say, and what of them is told while they arrive."""

import json

import pytest

from session_runtime.models.modes.reading import Read, StreamedAnswer, read_reply
from session_runtime.models.modes.told import Written

CALL = '{"calls": [{"name": "a", "arguments": {"n": 1}}]}'
REPLIES = {
    '{"answer": "It is 42."}': Read("It is 42."),
    ' {"answer": ""} ': Read(""),
    CALL: Read("", (Written("a", '{"n": 1}'),)),
    f"```json\n{CALL}\n```": Read("", (Written("a", '{"n": 1}'),)),
    '```\n{"answer": "fenced"}\n```': Read("fenced"),
    '{"answer": "first", "calls": [{"name": "a"}]}': Read("first", (Written("a", ""),)),
    '{"calls": [{"name": "a", "arguments": "{}"}, 7, {"name": 8, "arguments": [1]}]}': Read(
        "", (Written("a", "{}"), Written("", ""), Written("", "[1]"))
    ),
    '{"calls": []}': Read(),
    '{"calls": {}}': Read(),
    '{"answer": 42}': Read(),
    '{"calls": [{"name": "a", "arguments": {"n": 1, "n": 2}}]}': Read(),
    '{"calls": [{"name": "a", "argum': Read(),
    "{": Read(),
    '{"answer": "half of': Read("half of"),
    '{"answer": "whole"} and then this': Read("whole"),
    '{"answer": "two\nlines, a \\d+ and \\u00e9\\ud83d\\ude00"': Read("two\nlines, a \\d+ and é😀"),
    '{"answer": "cut in an escape \\u00': Read("cut in an escape "),
    '{"answer": "cut in a pair \\ud83d\\ud': Read("cut in a pair "),
    '{"answer": "half a pair \\ud83d."}': Read("half a pair \ufffd."),
    "Just a text.": Read("Just a text.", ours=False),
    '{"degrees": 21}': Read('{"degrees": 21}', ours=False),
    "[1, 2]": Read("[1, 2]", ours=False),
    '```python\nprint({"answer": 1})\n```': Read(
        '```python\nprint({"answer": 1})\n```', ours=False
    ),
}


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("text", REPLIES)
def test_a_reply_is_an_answer_or_calls_or_a_text_in_no_such_form(text: str) -> None:
    assert read_reply(text) == REPLIES[text]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("text", REPLIES)
def test_what_is_told_while_it_arrives_is_the_answer_and_never_its_markup(
    text: str, size: int
) -> None:
    told: list[str] = []
    streamed, read = StreamedAnswer(told.append), read_reply(text)
    for at in range(0, len(text), size):
        streamed.add(text[at : at + size])
    if not read.ours:
        streamed.release()
    assert "".join(told) == read.text


def test_an_answer_is_told_piece_by_piece() -> None:
    told: list[str] = []
    streamed = StreamedAnswer(told.append)
    for piece in ('{"ans', 'wer": "It', " is\\", "n4", '2."', "}"):
        streamed.add(piece)
    assert told == ["It", " is", "\n4", "2."]


def test_a_long_text_in_another_form_is_kept_until_the_end_in_time_that_grows_with_it() -> None:
    told: list[str] = []
    streamed, text = StreamedAnswer(told.append), json.dumps({"rows": ["x" * 40] * 5_000})
    for piece in text:
        streamed.add(piece)
    assert told == []
    streamed.release()
    assert "".join(told) == text
