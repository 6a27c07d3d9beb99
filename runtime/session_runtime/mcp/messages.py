"""Says which messages a line of a server's output holds, and how the others are shown to people.

Public: ``read_line``, ``read_text``, ``to_line``, ``NoMessage``, ``UNREADABLE``. Lines are cut in ``framing``
and sent on in ``stdio``; what comes over HTTP is sent on by ``answers``.
"""

import json
import re
from typing import Any, Final

from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from session_runtime.mcp.framing import Line
from session_runtime.mcp.json_slices import read_json

UNREADABLE: Final = PARSE_ERROR
"""The code of the error that a request gets if the answer to it could not be read."""

_EDGE_CHARS: Final = 1024
_MAX_STARTS: Final = 8
_STEERING: Final = re.compile(r"(?:\ufeff|\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x20])+")
_START: Final = re.compile(r'\{\s*"(?:jsonrpc|id|result|error|method)"\s*:')
_VERSION: Final = r'"jsonrpc"\s*:\s*"2\.0"\s*'
_ID: Final = r'"id"\s*:\s*(?P<id>\d{1,15}|"[^"\\]{1,100}")\s*'
_ANSWER_HEAD: Final = re.compile(
    rf'\{{\s*(?:{_VERSION},\s*)?{_ID},\s*(?:{_VERSION},\s*)?"(?:result|error)"\s*:'
)
_ANSWER_TAIL: Final = re.compile(rf"{_ID}(?:,\s*{_VERSION})?\}}\s*\Z")


class NoMessage(ValueError):
    """The line, or what came over HTTP, holds no message; the text is its beginning."""


def read_line(line: Line, *, first: bool) -> tuple[JSONRPCMessage, ...]:
    """The messages of one line: mostly one, none if it is blank, several if it is a batch.

    An answer that is broken or too long becomes an error ``UNREADABLE`` for its request, where that can be
    told. ``first``: no message came before, so that one may follow a banner on the same line.
    Raises NoMessage. Bytes that are no UTF-8 become U+FFFD.
    """
    if line.cut:
        head, tail = (piece.decode("utf-8", "replace") for piece in line.pieces)
        return (_refused(head, tail, f"it has {line.size} bytes, more than are taken"),)
    text = line.whole().decode("utf-8", "replace")
    start = leading.end() if (leading := _STEERING.match(text)) else 0
    if start == len(text):
        return ()
    if text[start] not in "{[":
        return _after_banner(text, first=first)
    try:
        return _messages(read_json(text[start:]))
    except NoMessage:
        return _after_banner(text, first=first)
    except ValueError as error:
        edges = text[start : start + _EDGE_CHARS], text[-_EDGE_CHARS:]
        return (_refused(*edges, str(error)),)


def read_text(data: bytes) -> tuple[JSONRPCMessage, ...]:
    """The messages of a whole text: one, or several if it is a batch; a byte order mark is no part of it.

    Raises NoMessage if there is anything else in it.
    """
    text = data.decode("utf-8", "replace")
    start = leading.end() if (leading := _STEERING.match(text)) else 0
    try:
        return _messages(read_json(text[start:]))
    except ValueError as error:
        raise NoMessage(text[:_EDGE_CHARS]) from error


def to_line(message: JSONRPCMessage) -> bytes:
    """The message as a line; halves of surrogate pairs stay as escapes."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:
        text = json.dumps(message.model_dump(by_alias=True, exclude_unset=True))
    return text.encode() + b"\n"


def _messages(value: Any) -> tuple[JSONRPCMessage, ...]:
    parts = value if isinstance(value, list) and value else [value]
    return tuple(_message(part) for part in parts)


def _message(value: Any) -> JSONRPCMessage:
    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        pass
    match value:
        case {"jsonrpc": "2.0", "id": str() | int() as id_} if not isinstance(id_, bool) and (
            "result" in value or "error" in value
        ):
            return _error(id_, "it is no JSON-RPC answer")
        case _:
            raise NoMessage(str(value)[:_EDGE_CHARS])


def _after_banner(text: str, *, first: bool) -> tuple[JSONRPCMessage, ...]:
    """The message at the end of the line, behind what was printed without an end of line."""
    if first:
        for start, _ in zip(_START.finditer(text, 1), range(_MAX_STARTS), strict=False):
            try:
                return _messages(read_json(text[start.start() :]))
            except ValueError:
                continue
    raise NoMessage(text[:_EDGE_CHARS])


def _refused(head: str, tail: str, why: str) -> JSONRPCMessage:
    """The error for the request whose answer cannot be read; raises NoMessage if it cannot be told."""
    found = _ANSWER_HEAD.match(head) or _ANSWER_TAIL.search(tail)
    if found is None:
        raise NoMessage(head)
    return _error(json.loads(found["id"]), why)


def _error(id_: str | int, why: str) -> JSONRPCError:
    error = ErrorData(code=UNREADABLE, message=f"the server's answer cannot be used: {why}")
    return JSONRPCError(jsonrpc="2.0", id=id_, error=error)
