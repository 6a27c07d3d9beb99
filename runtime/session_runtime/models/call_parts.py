"""Puts the pieces of streamed tool calls together; parsing their arguments is decided in ``ask``.

Servers differ in how they mark which call a piece belongs to: by index, by id, by both, or by
neither; some give every call the index 0, some send the name late or repeat it in each piece.
"""

import json
from collections.abc import Mapping, Set
from itertools import count
from typing import Any, Final

from session_runtime.models.extras import call_extra
from session_runtime.types import ToolCall

_LEGACY_INDEX: Final = -1


class _Parts:
    """One call in the making."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: dict[str, Any] = {}

    def add_arguments(self, piece: str) -> None:
        """Append a piece; some servers begin with an empty object in place of nothing."""
        if self.arguments == ["{}"] and piece.lstrip().startswith("{"):
            self.arguments.clear()
        if piece:
            self.arguments.append(piece)

    @property
    def complete(self) -> bool:
        """Whether the arguments so far are a JSON object, so that more text cannot belong to them."""
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False


class CallAssembly:
    """Gathers calls in the order in which they first appear (ASK-3)."""

    def __init__(self) -> None:
        self._calls: list[_Parts] = []
        self._by_index: dict[int, _Parts] = {}
        self._by_id: dict[str, _Parts] = {}

    def add_whole(self, item: Mapping[str, Any]) -> None:
        """Add a call that arrived in one piece."""
        self._fill(self._begin(_index(item)), item)

    def add_piece(self, item: Mapping[str, Any]) -> None:
        """Add a piece of a streamed call to the call it belongs to, or begin a new one."""
        index = _index(item)
        call = self._candidate(index, _id(item))
        if call is None or _begins_another(call, item):
            call = self._begin(index)
        self._fill(call, item)

    def add_end(self, item: Mapping[str, Any]) -> None:
        """Take the whole arguments of the call that an item is marked with, in place of its pieces."""
        index = _index(item)
        call = self._candidate(index, _id(item)) or self._begin(index)
        call.arguments.clear()
        self._fill(call, item)

    def add_legacy(self, function_call: Mapping[str, Any]) -> None:
        """Add the older form, one ``function_call`` per message without id or index."""
        self.add_piece({"index": _LEGACY_INDEX, "function": function_call})

    def calls(self, taken_ids: Set[str]) -> tuple[ToolCall, ...]:
        """All calls with names as sent and ids that differ from each other and from ``taken_ids``.

        A missing or repeated id becomes ``call_<n>``. Pieces that brought neither name nor
        arguments are no call.
        """
        taken = set(taken_ids)
        free_ids = (call_id for n in count() if (call_id := f"call_{n}") not in taken)
        calls: list[ToolCall] = []
        for parts in self._filled():
            known = parts.id and parts.id not in taken
            call_id = parts.id if known else next(free_ids)
            taken.add(call_id)
            arguments = "".join(parts.arguments)
            calls.append(ToolCall(call_id, parts.name, arguments, extra=parts.extra))
        return tuple(calls)

    def sent_ids(self) -> tuple[str, ...]:
        """For each of ``calls`` the id that the provider sent, "" where it sent none."""
        return tuple(parts.id for parts in self._filled())

    def _filled(self) -> list[_Parts]:
        return [parts for parts in self._calls if parts.name or any(parts.arguments)]

    def _candidate(self, index: int | None, call_id: str) -> _Parts | None:
        if index is not None:
            call = self._by_index.get(index)
            own = self._by_id.get(call_id) if call_id else None
            return own if own is not None and call is not None else call
        last = self._calls[-1] if self._calls else None
        if not call_id or last is None:
            return last
        return self._by_id.get(call_id, None if last.id else last)

    def _begin(self, index: int | None) -> _Parts:
        call = _Parts(index)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _fill(self, call: _Parts, item: Mapping[str, Any]) -> None:
        call.id = call.id or _id(item)
        if call.id:
            self._by_id[call.id] = call
        call.name = _joined_name(call.name, _name(item))
        call.add_arguments(_arguments(item))
        call.extra.update(call_extra(item))


def _begins_another(call: _Parts, item: Mapping[str, Any]) -> bool:
    """Whether a piece starts a new call although its marks point at ``call``."""
    call_id, name = _id(item), _name(item)
    if call_id and call.id and call_id != call.id:
        return bool(name) or call.complete
    if not name or not call.name:
        return False
    if any(call.arguments):
        return name != call.name or (call.complete and bool(_arguments(item)))
    return call.index is None and name != call.name


def _joined_name(before: str, name: str) -> str:
    """Some servers repeat the name in every piece, few send it in pieces."""
    if not name:
        return before
    return name if name.startswith(before) else before + name


def _function(item: Mapping[str, Any]) -> Mapping[str, Any]:
    function = item.get("function")
    return function if isinstance(function, dict) else {}


def _index(item: Mapping[str, Any]) -> int | None:
    index = item.get("index")
    return index if isinstance(index, int) else None


def _id(item: Mapping[str, Any]) -> str:
    call_id = item.get("id")
    return call_id if isinstance(call_id, str) else ""


def _name(item: Mapping[str, Any]) -> str:
    name = _function(item).get("name")
    return name if isinstance(name, str) else ""


def _arguments(item: Mapping[str, Any]) -> str:
    arguments = _function(item).get("arguments")
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
