"""What a fake service says; how it looks on a wire is decided in the module of its form."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from session_runtime.types import JsonObject, nothing

JSON_TYPE: Final = "application/json"
EVENTS_TYPE: Final = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Pace:
    """When the pieces of a reply leave.

    Before the first byte the server waits ``delay_s`` seconds and for ``gate``; before each piece it
    acquires ``step``. After ``cut_after`` pieces it closes the connection without ending the body; 0
    closes it without any answer.
    """

    delay_s: float = 0.0
    gate: asyncio.Event | None = None
    step: asyncio.Semaphore | None = None
    cut_after: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call by wire name; ``arguments`` are the raw text."""

    name: str
    arguments: str
    id: str
    extra: JsonObject = field(default_factory=nothing)


Edit = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
"""Changes what is sent: the objects of a stream in their order, or the one that is not streamed."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply on any wire, streamed or not, as the request asks.

    ``extra`` are more fields of the message, on the wire ``chat``; ``items`` stand before text and calls
    in the output, on the wires ``responses`` and ``anthropic``. ``usage`` and ``finish_reason`` are in the
    words of chat completions; without ``usage`` the server does not tell any. ``edits`` are per wire what is
    to be wrong with it.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: JsonObject | None = None
    finish_reason: str = "stop"
    extra: JsonObject = field(default_factory=nothing)
    items: tuple[JsonObject, ...] = ()
    edits: Mapping[str, Edit] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class RawReply:
    """A response byte for byte; several pieces are sent one by one in chunks."""

    pieces: tuple[bytes, ...]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)


Reply = ChatReply | RawReply


def edited(reply: ChatReply, wire: str, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects of a reply as its edit for a wire leaves them."""
    edit = reply.edits.get(wire)
    return objects if edit is None else edit(objects)


def reply_text(
    text: str, *, usage: JsonObject | None = None, pace: Pace | None = None
) -> ChatReply:
    """The model answers in words."""
    return ChatReply(text, usage=usage, pace=pace or Pace())


def reply_calls(
    *calls: tuple[str, Mapping[str, Any] | str], text: str = "", pace: Pace | None = None
) -> ChatReply:
    """The model calls tools: pairs of wire name and arguments, as an object or as raw text."""
    return ChatReply(
        text,
        tuple(
            Call(name, arguments if isinstance(arguments, str) else json.dumps(arguments), f"c{at}")
            for at, (name, arguments) in enumerate(calls)
        ),
        finish_reason="tool_calls",
        pace=pace or Pace(),
    )


def reply_error(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> RawReply:
    """The server refuses, with an error object as the well-known services send it."""
    error = {"message": message, "type": "error", "param": param, "code": code}
    return RawReply(
        (json.dumps({"error": error}).encode(),),
        status,
        {"content-type": JSON_TYPE, **(headers or {})},
    )


def reply_bytes(
    *pieces: bytes,
    status: int = 200,
    content_type: str = EVENTS_TYPE,
    headers: Mapping[str, str] | None = None,
    pace: Pace | None = None,
) -> Reply:
    """Anything at all, piece by piece."""
    merged = {"content-type": content_type, **(headers or {})}
    return RawReply(tuple(pieces), status, merged, pace or Pace())


def words(text: str) -> list[str]:
    """The pieces in which a text is streamed; each keeps the blanks behind it."""
    return re.findall(r"\S+\s*|\s+", text)


def halves(text: str) -> list[str]:
    """The pieces in which arguments are streamed."""
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]
