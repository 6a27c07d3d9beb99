"""Calls between special tokens that a server did not take out: Mistral, DeepSeek, Kimi, gpt-oss."""

from typing import Final

from session_runtime.models.recovery.json_calls import as_text, read_calls
from session_runtime.models.recovery.written import (
    Cursor,
    NoEnvelopeError,
    WrittenCall,
    checked_name,
)

MISTRAL: Final = "[TOOL_CALLS]"
DEEPSEEK: Final = "<｜tool▁calls▁begin｜>"
HARMONY: Final = "<|channel|>"
HARMONY_START: Final = "<|start|>assistant"
_MESSAGE: Final = "<|message|>"
KIMI: Final = "<|tool_calls_section_begin|>"


def read_mistral(cursor: Cursor) -> list[WrittenCall]:
    """``[TOOL_CALLS]`` with an array of calls, or with a name, ``[ARGS]`` and an object."""
    cursor.expect(MISTRAL)
    if cursor.sees("["):
        return read_calls(cursor, marked=True)
    calls = [_with_args(cursor)]
    while cursor.takes(MISTRAL):
        calls.append(_with_args(cursor))
    return calls


def read_deepseek(cursor: Cursor) -> list[WrittenCall]:
    """A name and an object in each call; in older models the word ``function`` and a code fence too."""
    cursor.expect(DEEPSEEK)
    calls: list[WrittenCall] = []
    while cursor.takes("<｜tool▁call▁begin｜>"):
        name = cursor.name("<｜tool▁sep｜>")
        if name == "function" and not cursor.sees("{"):
            name = cursor.name("```json")
            calls.append(WrittenCall(name, _object(cursor)))
            cursor.expect("```")
        else:
            calls.append(WrittenCall(name, _object(cursor)))
        cursor.close("<｜tool▁call▁end｜>")
    cursor.close("<｜tool▁calls▁end｜>")
    return calls


def read_kimi(cursor: Cursor) -> list[WrittenCall]:
    """An id of the form ``functions.name:0`` and an object in each call."""
    cursor.expect(KIMI)
    calls: list[WrittenCall] = []
    while cursor.takes("<|tool_call_begin|>"):
        call_id = cursor.name("<|tool_call_argument_begin|>")
        name = call_id.removeprefix("functions.").rpartition(":")[0]
        calls.append(WrittenCall(checked_name(name), _object(cursor)))
        cursor.close("<|tool_call_end|>")
    cursor.close("<|tool_calls_section_end|>")
    return calls


def read_harmony(cursor: Cursor) -> list[WrittenCall]:
    """Messages that are calls, each with the tool that it is for; thinking between them is passed."""
    calls: list[WrittenCall] = []
    while not cursor.done:
        cursor.takes(HARMONY_START)
        name = _recipient(cursor)
        cursor.expect(HARMONY)
        cursor.word()
        name = _recipient(cursor) or name
        cursor.takes("<|constrain|>")
        if not cursor.sees(_MESSAGE):
            cursor.word()
        cursor.expect(_MESSAGE)
        if name:
            calls.append(WrittenCall(name, _object(cursor)))
            cursor.close("<|call|>")
        else:
            cursor.before("<|end|>")
    if not calls:
        raise NoEnvelopeError
    return calls


def _recipient(cursor: Cursor) -> str:
    """Whom a message is for, "" if it says nothing of that."""
    return cursor.word() if cursor.takes("to=") else ""


def _with_args(cursor: Cursor) -> WrittenCall:
    name = cursor.word()
    if cursor.takes("[CALL_ID]"):
        cursor.word()
    cursor.expect("[ARGS]")
    return WrittenCall(name, _object(cursor))


def _object(cursor: Cursor) -> str:
    value = cursor.json()
    if not isinstance(value, dict):
        raise NoEnvelopeError
    return as_text(value)
