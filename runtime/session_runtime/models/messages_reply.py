"""Turns the events of a Messages stream, or a whole message, into a reply; ``reading`` finds the events."""

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Final

from session_runtime.errors import PermanentError
from session_runtime.models import faults
from session_runtime.models.base import INCOMPLETE, ModelReply, plain_reason
from session_runtime.models.call_items import Place, place_of
from session_runtime.models.call_parts import CallAssembly
from session_runtime.models.messages_blocks import keep_blocks
from session_runtime.models.places import objects
from session_runtime.models.reading import State
from session_runtime.models.usage import read_usage
from session_runtime.registry.names import WireNames
from session_runtime.types import Usage

MAX_BLOCKS: Final = 1_000
_PIECES: Final[Mapping[str, str]] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Per kind of a delta the field that holds its piece of text."""

_INPUTS: Final = ("input", "arguments", "parameters")
_MARKS: Final = frozenset({"type", "id", "name", "cache_control", "caller", *_INPUTS})
_NO_CALLS: Final = frozenset({"text", "thinking", "redacted_thinking"})


@dataclass(slots=True)
class _Block:
    """A block as it grows: its place in the order and as it is marked, how it began, its pieces by field."""

    index: int
    mark: Place
    begun: Mapping[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)
    ended: bool = False

    def text(self, name: str) -> str:
        """What came of a field, behind what the block began with."""
        begun = self.begun.get(name)
        return (begun if isinstance(begun, str) else "") + "".join(self.pieces.get(name, ()))

    def arguments(self) -> str:
        """The text of a call's arguments: its pieces, else what it began with, be it that it has none."""
        if written := self.text("partial_json"):
            return written
        given = next(
            (v for name in _INPUTS if (v := self.begun.get(name))), self.begun.get("input")
        )
        if isinstance(given, str):
            return given
        return json.dumps(given, ensure_ascii=False) if given or self.ended else ""

    @property
    def waits(self) -> bool:
        """Whether no arguments have come yet."""
        return "partial_json" not in self.pieces and not any(map(self.begun.get, _INPUTS))

    @property
    def is_of_service(self) -> bool:
        """Whether it is of a kind that is not ours, such as a tool that the service runs itself."""
        return self.begun.get("type") not in (*_NO_CALLS, "tool_use")

    def whole(self) -> dict[str, Any]:
        """The block as it would have come in one piece."""
        texts = {name: self.text(name) for name in ("text", "thinking", "signature")}
        return {**self.begun, **{name: text for name, text in texts.items() if text}}


class MessageAssembly:
    """Gathers one reply; unknown events, blocks and fields are passed over.

    A field with a wrong type is treated as absent. Error objects never come here. PermanentError for
    more than MAX_BLOCKS blocks.
    """

    def __init__(self, endpoint: faults.Endpoint) -> None:
        self._endpoint = endpoint
        self._blocks: list[_Block] = []
        self._lost: list[str] = []
        self._usage: dict[str, int] = {}
        self._reason: str | None = None
        self._over = False

    @property
    def state(self) -> State:
        """Once the model said why it stopped, nothing but the end can follow."""
        if self._over:
            return "over"
        return "open" if self._reason is None else "complete"

    def add(self, chunk: dict[str, Any]) -> str:
        """Take one event; returns the text it brought."""
        match chunk.get("type"):
            case "message_start":
                return self._begin(chunk.get("message"))
            case "content_block_start":
                return self._begin_block(chunk.get("index"), chunk.get("content_block"))
            case "content_block_delta":
                return self._add_piece(chunk.get("index"), chunk.get("delta"))
            case "content_block_stop":
                self._end_block(chunk.get("index"))
            case "message_delta":
                self._take_head(chunk.get("delta"), chunk.get("usage"))
            case "message_stop":
                self._reason = self._reason or INCOMPLETE
                self._over = True
        return ""

    def add_whole(self, document: dict[str, Any]) -> str:
        """Take a message that is not streamed; returns its text."""
        if document.get("type") != "message" and "content" not in document:
            raise faults.not_an_api(self._endpoint, "a JSON object without 'content'")
        text = self._begin(document)
        for block in self._blocks:
            block.ended = True
        self._reason, self._over = self._reason or "end_turn", True
        return text

    def add_end_mark(self) -> None:
        """A mark at the end of the stream says nothing about the message."""

    def reply(self, names: WireNames, taken_ids: Set[str], origin: str) -> ModelReply:
        """The reply with canonical names and with ids that are not in ``taken_ids``."""
        blocks = self._in_order()
        calls = _calls(blocks)
        for piece in self._lost:
            calls.add_lost(piece)
        cut = calls.doubtful or any(not block.ended and _is_call(block) for block in blocks)
        return ModelReply(
            text="".join(block.text("text") for block in blocks if _is_text(block)),
            calls=tuple(
                replace(call, name=names.decode(call.name)) for call in calls.calls(taken_ids)
            ),
            usage=_read_usage(self._usage),
            finish_reason=INCOMPLETE if cut else self._told_reason(),
            extra=keep_blocks((block.whole() for block in blocks if block.ended), origin),
        )

    def _told_reason(self) -> str | None:
        return None if self._reason is None else plain_reason(self._reason)

    def _in_order(self) -> list[_Block]:
        return sorted(self._blocks, key=attrgetter("index"))

    def _begin(self, message: object) -> str:
        """Take the head of a message, and the blocks that it comes with."""
        if not isinstance(message, dict):
            return ""
        self._take_head(message, message.get("usage"))
        content = message.get("content")
        said = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
        blocks = enumerate(said)
        return "".join(self._begin_block(at, block) for at, block in blocks)

    def _take_head(self, head: object, usage: object) -> None:
        reason = head.get("stop_reason") if isinstance(head, dict) else None
        if isinstance(reason, str) and reason:
            self._reason = reason
        for name, count in usage.items() if isinstance(usage, dict) else ():
            if isinstance(count, int) and count > self._usage.get(name, 0):
                self._usage[name] = count

    def _begin_block(self, index: object, begun: object) -> str:
        if not isinstance(begun, dict):
            return ""
        if len(self._blocks) == MAX_BLOCKS:
            raise PermanentError(
                f"the model's reply holds more than {MAX_BLOCKS} blocks",
                code="model.reply_too_large",
            )
        behind = 1 + max((block.index for block in self._blocks), default=-1)
        mark = place_of(index)
        at = mark if isinstance(mark, int) else behind
        block = _Block(at, at if mark is None else mark, begun)
        self._blocks.append(block)
        return block.text("text") if _is_text(block) else ""

    def _add_piece(self, index: object, delta: object) -> str:
        if not isinstance(delta, dict):
            return ""
        name = _PIECES.get(str(delta.get("type")), "partial_json")
        piece = delta.get(name)
        if name == "partial_json":
            self._add_arguments(index, piece)
        elif isinstance(piece, str):
            return self._add_text(index, name, piece)
        return ""

    def _add_text(self, index: object, name: str, piece: str) -> str:
        block = self._at(index)
        if block is None and name == "text":
            self._begin_block(index, {"type": "text"})
            block = self._blocks[-1]
        if block is None:
            return ""
        block.pieces.setdefault(name, []).append(piece)
        return piece if name == "text" and _is_text(block) else ""

    def _add_arguments(self, index: object, piece: object) -> None:
        """Add to the open call at the index, else to the only one that is open; else they are lost.

        So they are where several calls that are marked alike still wait for theirs.
        """
        block = self._at(index)
        if piece in (None, "") or (block is not None and block.is_of_service):
            return
        text = piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False)
        goes_on = block is not None and _is_call(block) and not (block.ended or block.waits)
        if owner := block if goes_on else self._owner(index, block):
            owner.pieces.setdefault("partial_json", []).append(text)
        else:
            self._lost.append(text)

    def _owner(self, index: object, block: _Block | None) -> _Block | None:
        """The call that first gets arguments for an index, whose newest block is this one."""
        mark, still = place_of(index), [b for b in self._blocks if _is_call(b) and not b.ended]
        fitting = [each for each in still if mark is None or each.mark == mark]
        if not fitting:
            ended = [block] if block is not None and _is_call(block) else []
            fitting = still if len(still) == 1 else ended
        return None if any(each.waits for each in fitting[:-1]) else next(reversed(fitting), None)

    def _end_block(self, index: object) -> None:
        if block := self._at(index):
            block.ended = True

    def _at(self, index: object) -> _Block | None:
        """The block that an event is about: the newest one of its mark, or of all if it has none."""
        mark = place_of(index)
        about = (b for b in reversed(self._blocks) if mark is None or b.mark == mark)
        return next(about, None)


def _is_text(block: _Block) -> bool:
    return block.begun.get("type") == "text"


def _is_call(block: _Block) -> bool:
    return block.begun.get("type") == "tool_use"


def _calls(blocks: Iterable[_Block]) -> CallAssembly:
    calls = CallAssembly()
    for block in blocks:
        if _is_call(block):
            more = {name: value for name, value in block.begun.items() if name not in _MARKS}
            function = {**more, "name": block.begun.get("name"), "arguments": block.arguments()}
            calls.add_whole({"id": block.begun.get("id"), "function": function})
    return calls


def _read_usage(told: Mapping[str, Any]) -> Usage | None:
    """The count of one call; what was read from the cache, or put into it, is told apart from the rest."""
    parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [count for name in parts if isinstance(count := told.get(name), int) and count > 0]
    cached = {"cached_tokens": told.get("cache_read_input_tokens")}
    return read_usage(
        {
            "input_tokens": sum(counts),
            "output_tokens": told.get("output_tokens"),
            "input_tokens_details": cached,
        }
    )
