"""Calls between tags: JSON and others in ``<tool_call>``, ``<function=...>``, ``<invoke name="...">``."""

from math import inf
from typing import Final

from session_runtime.models.recovery.json_calls import read_calls, read_raw
from session_runtime.models.recovery.written import (
    Cursor,
    NoEnvelopeError,
    Parameters,
    WrittenCall,
    laid_out,
)

TOOL_CALL: Final = "<tool_call>"
FUNCTION: Final = "<function="
_END: Final = "</tool_call>"


def read_tool_calls(cursor: Cursor) -> list[WrittenCall]:
    """``<tool_call>...</tool_call>``, several in a row.

    Inside is JSON (Hermes, Qwen), a ``<function=...>`` (Qwen3-Coder) or a name with keys and values (GLM).
    Some models open one twice.
    """
    calls: list[WrittenCall] = []
    while opened := _count(cursor, TOOL_CALL):
        if cursor.sees("{") or cursor.sees("["):
            calls += _json_inside(cursor, TOOL_CALL, _END)
        elif cursor.sees(FUNCTION):
            calls += read_functions(cursor)
            cursor.close(_END, TOOL_CALL)
        else:
            calls.append(WrittenCall(cursor.word(), _keys_and_values(cursor)))
            (cursor.close if calls[-1].arguments else cursor.expect)(_END)
        _count(cursor, _END, most=opened - 1)
    return calls


def _count(cursor: Cursor, mark: str, most: float = inf) -> int:
    """Pass a mark as often as it comes in a row."""
    found = 0
    while found < most and cursor.takes(mark):
        found += 1
    return found


def read_marked_json(cursor: Cursor, opening: str, closing: str) -> list[WrittenCall]:
    """JSON calls between other marks, once or several times in a row; some models omit what closes."""
    calls: list[WrittenCall] = []
    while cursor.takes(opening):
        calls += _json_inside(cursor, opening, closing)
    return calls


def read_functions(cursor: Cursor) -> list[WrittenCall]:
    """``<function=name>`` with an object (Llama) or ``<parameter=...>`` (Qwen3-Coder), several in a row."""
    calls: list[WrittenCall] = []
    while cursor.takes(FUNCTION):
        name = cursor.name(">")
        if cursor.sees("<parameter=") or cursor.sees("</function>"):
            calls.append(WrittenCall(name, _parameters(cursor)))
            cursor.expect("</function>")
        else:
            calls.append(WrittenCall(name, _object_text(cursor)))
    return calls


def read_wrapped_functions(cursor: Cursor, opening: str, closing: str) -> list[WrittenCall]:
    """Functions inside other marks, once or several times in a row."""
    calls: list[WrittenCall] = []
    while cursor.takes(opening):
        calls += read_functions(cursor)
        cursor.close(closing)
    return calls


def read_invokes(cursor: Cursor, namespace: str) -> list[WrittenCall]:
    """``<invoke name="...">`` with ``<parameter name="...">``, several in a row."""
    calls: list[WrittenCall] = []
    while cursor.takes(f'<{namespace}invoke name="'):
        name = cursor.name('"')
        cursor.expect(">")
        parameters: list[tuple[str, str]] = []
        while cursor.takes(f'<{namespace}parameter name="'):
            key = cursor.name('"')
            _ = cursor.takes('string="true"') or cursor.takes('string="false"')  # DeepSeek
            cursor.expect(">")
            parameters.append((key, laid_out(cursor.before(f"</{namespace}parameter>"))))
        cursor.expect(f"</{namespace}invoke>")
        calls.append(WrittenCall(name, tuple(parameters)))
    return calls


def read_wrapped_invokes(cursor: Cursor, wrapper: str, namespace: str) -> list[WrittenCall]:
    """Invokes inside the tag that stands around all calls of a turn."""
    cursor.expect(f"<{wrapper}>")
    calls = read_invokes(cursor, namespace)
    cursor.close(f"</{wrapper}>")
    return calls


def _json_inside(cursor: Cursor, opening: str, closing: str) -> list[WrittenCall]:
    """Strict JSON up to ``closing``, which may stand in a text of it; else whatever is there as it is."""
    begin = cursor.place
    try:
        calls = read_calls(cursor, marked=True)
        cursor.close(closing, opening)
    except NoEnvelopeError:
        if not closing:
            raise
        cursor.look_again(begin)
        return [read_raw(cursor.json_before(closing))]
    return calls


def _object_text(cursor: Cursor) -> str:
    """The text of one object up to the end of its function."""
    if not cursor.sees("{"):
        raise NoEnvelopeError
    return cursor.json_before("</function>").strip()


def _parameters(cursor: Cursor) -> Parameters:
    found: list[tuple[str, str]] = []
    while cursor.takes("<parameter="):
        key = cursor.name(">")
        found.append((key, laid_out(cursor.before("</parameter>"))))
    return tuple(found)


def _keys_and_values(cursor: Cursor) -> Parameters:
    found: list[tuple[str, str]] = []
    while cursor.takes("<arg_key>"):
        key = cursor.name("</arg_key>")
        cursor.expect("<arg_value>")
        found.append((key, laid_out(cursor.before("</arg_value>"))))
    return tuple(found)
