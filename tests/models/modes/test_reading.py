"""Replies in the form of mode ``json_schema``: what they say, and what of them is told while they arrive."""

import json
import time

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
        "",
        (
            Written("a", "{}"),
            Written("", "[7]"),
            Written("", '[{"name": 8, "arguments": [1]}]'),
        ),
    ),
    '{"calls": [{"name": "a", "parameters": {"n": 1}}]}': Read("", (Written("a", '{"n": 1}'),)),
    '{"calls": [{"tool": "a", "arguments": {"n": 1}}]}': Read("", (Written("a", '{"n": 1}'),)),
    '{"calls": [{"type": "function", "function": {"name": "a", "arguments": {"n": 1}}}]}': Read(
        "", (Written("a", '{"n": 1}'),)
    ),
    '{"calls": {"name": "a", "arguments": {"n": 1}}}': Read("", (Written("a", '{"n": 1}'),)),
    '{"calls": [{"name": "a", "args": {"n": 1}}]}': Read(
        "", (Written("a", '[{"name": "a", "args": {"n": 1}}]'),)
    ),
    '{"calls": [{"name": "a", "n": 1}]}': Read("", (Written("a", '[{"name": "a", "n": 1}]'),)),
    '{"calls": [{"function": {"name": "a", "n": 1}}]}': Read(
        "", (Written("a", '[{"function": {"name": "a", "n": 1}}]'),)
    ),
    '{"calls": [{"name": "a", "arguments": {}, "parameters": {"n": 1}}]}': Read(
        "", (Written("a", '[{"name": "a", "arguments": {}, "parameters": {"n": 1}}]'),)
    ),
    '{"calls": []}': Read(),
    '{"calls": {}}': Read(),
    '{"answer": 42}': Read("42"),
    '{"answer": true}': Read("true"),
    '{"answer": null}': Read(),
    '{"answer": ["Rom\\u00e9", 1]}': Read('["Romé", 1]'),
    '{"answer": {"city": "Rome"}, "calls": []}': Read('{"city": "Rome"}'),
    '{"answer": 42, "calls": [{"name": "a"}]}': Read("42", (Written("a", ""),)),
    '{"answer": {"city": "Ro': Read(),
    '{"answer": "whole", "calls": [{"na': Read("whole"),
    '{"answer": "two\nlines"}': Read("two\nlines"),
    '{"calls": [{"name": "a", "arguments": {"n": 1, "n": 2}}]}': Read(),
    '{"calls": [{"name": "a", "argum': Read(),
    "{": Read(),
    '{"answer": "half of': Read("half of", broke_off=True),
    '{"answer": "whole"} and then this': Read("whole"),
    '{"answer": "two\nlines, a \\d+ and \\u00e9\\ud83d\\ude00"': Read("two\nlines, a \\d+ and é😀"),
    '{"answer": "cut in an escape \\u00': Read("cut in an escape ", broke_off=True),
    '{"answer": "cut in a pair \\ud83d\\ud': Read("cut in a pair ", broke_off=True),
    '{"answer": "half a pair \\ud83d."}': Read("half a pair \ufffd."),
    '{"calls": [], "answer": "late"}': Read("late"),
    '{"calls": null, "answer": "late"}': Read("late"),
    '{"calls": [{"name": "a", "arguments": {"answer": "no, \\"}"}}], "answer": "beside"}': Read(
        "beside", (Written("a", '{"answer": "no, \\"}"}'),)
    ),
    '{"thought": "hm {[,\\\\", "n": [1, {"answer": "no"}], "answer": "yes"}': Read("yes"),
    '```json\n{"calls": [], "answer": "fenced"}\n```': Read("fenced"),
    '{"calls": [], "answer": "half of': Read("half of", broke_off=True),
    '{"thought": "hm", "answer": "half of': Read("half of", broke_off=True),
    '{"calls": [{"name": "a", "arguments": {"answer": "no': Read(),
    '{"thought": "hm", "calls": [{"na': Read(),
    '{"thought": "hm", "calls": [], "ans': Read(),
    '{"ans': Read(),
    '{"answer"': Read(),
    '{"answer": ': Read(),
    '{"thought": "hm", "deg': Read('{"thought": "hm", "deg', ours=False),
    '{"a": 1, "answer": "x", "answer": "y"}': Read("x"),
    f'{{"{"k" * 300}": 1, "answer": "far"}}': Read("far"),
    '{"\\u0061nswer": "spelt"}': Read("spelt"),
    "{weather} is a placeholder": Read("{weather} is a placeholder", ours=False),
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
    streamed.end(read)
    assert "".join(told) == read.text


def test_an_answer_is_told_piece_by_piece() -> None:
    told: list[str] = []
    streamed = StreamedAnswer(told.append)
    for piece in ('{"ans', 'wer": "It', " is\\", "n4", '2."', "}"):
        streamed.add(piece)
    assert told == ["It", " is", "\n4", "2."]


def test_an_answer_behind_calls_is_told_piece_by_piece() -> None:
    told: list[str] = []
    streamed = StreamedAnswer(told.append)
    for piece in ('{"calls": [', '], "ans', 'wer": "It', " is", ' 42."', "}"):
        streamed.add(piece)
    assert told == ["It", " is", " 42."]


def test_a_long_text_in_another_form_is_kept_until_the_end_in_time_that_grows_with_it() -> None:
    told: list[str] = []
    streamed, text = StreamedAnswer(told.append), json.dumps({"rows": ["x" * 40] * 5_000})
    for piece in text:
        streamed.add(piece)
    assert told == []
    streamed.end(read_reply(text))
    assert "".join(told) == text


@pytest.mark.parametrize("unit", ['{"a":', "[", '"', '\\"', '{"answer": "', '"a": 1,', "\\"])
def test_any_object_is_looked_through_in_time_that_grows_with_it(unit: str) -> None:
    def cpu_s(text: str) -> float:
        streamed = StreamedAnswer(lambda told: None)
        start = time.process_time()
        for at in range(0, len(text), 16):
            streamed.add(text[at : at + 16])
        return time.process_time() - start

    text = '{"calls": ' + unit * (200_000 // len(unit))
    short, long = (min(cpu_s(text[:size]) for _ in range(3)) for size in (25_000, 200_000))
    assert long < 30 * short + 0.01
