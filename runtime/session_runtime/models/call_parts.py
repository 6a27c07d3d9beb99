"""Puts the pieces of streamed tool calls together; parsing their arguments is decided in ``ask``.

Servers differ in how they mark which call a piece belongs to: by index, by id, by both, or by
neither; some give every call the index 0, some send the name late or repeat it in each piece.
"""

import json
import re
from collections.abc import Mapping, Set
from itertools import count
from typing import Any, Final

from session_runtime.errors import PermanentError
from session_runtime.models.argument_text import ArgumentText
from session_runtime.models.extras import call_extra
from session_runtime.types import ToolCall

MAX_CALLS: Final = 1_000
MAX_CHARS: Final = 4_000_000
MAX_NAME_CHARS: Final = 1_000
MAX_ID_CHARS: Final = 4_096
"""Some gateways put a signature into the ids of calls; what is longer counts as no id."""

_USABLE_ID: Final = re.compile(r"[!-~]+")
_DIGITS: Final = re.compile("[0-9]{1,9}")
_LEGACY_INDEX: Final = -1


class _Parts:
    """One call in the making; ``ended`` once the service said that its arguments are whole.

    ``named_again`` if the last piece told its name behind its whole arguments, and nothing else.
    """

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = ArgumentText()
        self.ended = False
        self.named_again = False
        self.extra: dict[str, Any] = {}

    @property
    def blank(self) -> bool:
        return not str(self.arguments).strip()


class CallAssembly:
    """Gathers calls in the order in which they first appear (ASK-3).

    What is added is bounded: PermanentError for more than MAX_CALLS calls, for names and arguments of
    more than MAX_CHARS characters together, and for a name of more than MAX_NAME_CHARS.
    """

    def __init__(self) -> None:
        self._calls: list[_Parts] = []
        self._by_index: dict[int, _Parts] = {}
        self._by_id: dict[str, _Parts] = {}
        self._chars = 0

    @property
    def empty(self) -> bool:
        """Whether neither a name nor arguments have come."""
        return not self._chars

    @property
    def without_arguments(self) -> bool:
        """Whether there is a call that has none."""
        return any(call.blank for call in self._filled())

    @property
    def unfinished(self) -> bool:
        """Whether a call has no arguments and nothing says that it ends without any."""
        return any(call.blank and not call.ended for call in self._filled())

    def add_whole(self, item: Mapping[str, Any]) -> None:
        """Add a call that arrived in one piece."""
        call = self._begin(_index(item))
        self._fill(call, item)
        call.ended = True

    def add_piece(self, item: Mapping[str, Any]) -> None:
        """Add a piece of a streamed call to the call it belongs to, or begin a new one."""
        index = _index(item)
        call = self._candidate(index, item)
        if call is None or _begins_another(call, item):
            call = self._begin(index)
        elif _repeats(call, item):
            call.arguments.replace("")
        elif call.named_again and _begins_arguments(item):
            call = self._again(call, index)
        if index is not None:
            self._by_index.setdefault(index, call)
        named_again = bool(_name(item)) and not _arguments(item) and call.arguments.closed
        self._fill(call, item)
        call.named_again = named_again

    def add_end(self, item: Mapping[str, Any]) -> None:
        """Take the whole arguments of the call that an item is marked with, in place of its pieces."""
        index = _index(item)
        call = self._candidate(index, item) or self._begin(index)
        call.arguments.replace("")
        self._fill(call, item)
        call.ended = True

    def add_legacy(self, function_call: Mapping[str, Any]) -> None:
        """Add the older form, one ``function_call`` per message without id or index."""
        self.add_piece({"index": _LEGACY_INDEX, "function": function_call})

    def calls(self, taken_ids: Set[str]) -> tuple[ToolCall, ...]:
        """All calls with names as sent and ids that differ from each other and from ``taken_ids``.

        An id that is missing, repeated or no visible ASCII becomes ``call_<n>``. Pieces that brought neither
        name nor arguments are no call, nor is one that repeats another in all of id, name and arguments.
        """
        taken = set(taken_ids)
        free_ids = (call_id for n in count() if (call_id := f"call_{n}") not in taken)
        calls: list[ToolCall] = []
        for parts in self._filled():
            known = _USABLE_ID.fullmatch(parts.id) and parts.id not in taken
            call_id = parts.id if known else next(free_ids)
            taken.add(call_id)
            calls.append(ToolCall(call_id, parts.name, str(parts.arguments), extra=parts.extra))
        return tuple(calls)

    def sent_ids(self) -> tuple[str, ...]:
        """For each of ``calls`` the id that the provider sent, "" where it sent none."""
        return tuple(parts.id for parts in self._filled())

    def _filled(self) -> list[_Parts]:
        filled: dict[object, _Parts] = {}
        for at, parts in enumerate(self._calls):
            if parts.name or parts.arguments:
                told = (parts.id, parts.name, str(parts.arguments)) if parts.id else at
                filled.setdefault(told, parts)
        return list(filled.values())

    def _candidate(self, index: int | None, item: Mapping[str, Any]) -> _Parts | None:
        """The call that an item's marks point at; a known id under a new index may go on with its call."""
        call_id = _id(item)
        if index is not None:
            call = self._by_index.get(index)
            own = self._by_id.get(call_id) if call_id else None
            if own is None or (call is None and (_name(item) or own.arguments.closed)):
                return call
            return own
        last = self._calls[-1] if self._calls else None
        if not call_id or last is None:
            return last
        return self._by_id.get(call_id, None if last.id else last)

    def _again(self, call: _Parts, index: int | None) -> _Parts:
        """Where arguments go that begin anew: a call with an id is repeated, else another one begins."""
        if call.id:
            call.arguments.replace("")
            return call
        another = self._begin(index)
        another.name = call.name
        return another

    def _begin(self, index: int | None) -> _Parts:
        if len(self._calls) == MAX_CALLS:
            raise _too_large(f"more than {MAX_CALLS} tool calls")
        call = _Parts(index)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _fill(self, call: _Parts, item: Mapping[str, Any]) -> None:
        name, arguments = _name(item), _arguments(item)
        self._chars += len(name) + len(arguments)
        if self._chars > MAX_CHARS:
            raise _too_large(f"tool calls of more than {MAX_CHARS} characters")
        call.id = call.id or _id(item)
        if call.id:
            self._by_id[call.id] = call
        call.name = _joined_name(call.name, name)
        if len(call.name) > MAX_NAME_CHARS:
            raise _too_large(f"a tool name of more than {MAX_NAME_CHARS} characters")
        call.arguments.add(arguments)
        call.extra.update(call_extra(item))


def _too_large(what: str) -> PermanentError:
    return PermanentError(f"the model's reply holds {what}", code="model.reply_too_large")


def _begins_another(call: _Parts, item: Mapping[str, Any]) -> bool:
    """Whether a piece starts a new call although its marks point at ``call``."""
    call_id, name = _id(item), _name(item)
    if call_id and call.id:
        return call_id != call.id and (bool(name) or call.arguments.closed)
    if not name or not call.name:
        return False
    if call.arguments:
        return name != call.name or (call.arguments.closed and bool(_arguments(item)))
    return call.index is None and name != call.name


def _repeats(call: _Parts, item: Mapping[str, Any]) -> bool:
    """Whether a piece sends the call that it bears the id and the name of once more."""
    repeated = call.id and _id(item) == call.id and _name(item) == call.name
    return bool(repeated and _begins_arguments(item) and call.arguments.closed)


def _begins_arguments(item: Mapping[str, Any]) -> bool:
    return _arguments(item).lstrip().startswith("{")


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
    if isinstance(index, int):
        return index
    if isinstance(index, float) and index.is_integer():
        return int(index)
    return int(index) if isinstance(index, str) and _DIGITS.fullmatch(index) else None


def _id(item: Mapping[str, Any]) -> str:
    call_id = item.get("id")
    return call_id if isinstance(call_id, str) and len(call_id) <= MAX_ID_CHARS else ""


def _name(item: Mapping[str, Any]) -> str:
    name = _function(item).get("name")
    return name if isinstance(name, str) else ""


def _arguments(item: Mapping[str, Any]) -> str:
    arguments = _function(item).get("arguments")
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
