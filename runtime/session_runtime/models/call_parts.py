"""Puts the pieces of streamed tool calls together; parsing their arguments is decided in ``ask``.

Servers differ in how they mark which call a piece belongs to: by index, by id, by both, or by
neither; some give every call the index 0, some send the name late or repeat it in each piece. What one
piece says of itself is ``call_items``'s.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from itertools import count
from typing import Any, Final

from session_runtime.errors import PermanentError
from session_runtime.models.argument_text import ArgumentText
from session_runtime.models.call_items import (
    Place,
    arguments_of,
    begins_arguments,
    holds_more,
    id_of,
    index_of,
    name_of,
)
from session_runtime.models.extras import call_extra
from session_runtime.types import ToolCall

MAX_CALLS: Final = 1_000
MAX_CHARS: Final = 4_000_000
MAX_NAME_CHARS: Final = 1_000

_USABLE_ID: Final = re.compile(r"[!-~]+")
_LEGACY_INDEX: Final = -1


class _Parts:
    """One call in the making; ``ended`` once the service said that its arguments are whole.

    ``named_again`` if the last piece told its name behind its whole arguments, and nothing else; ``echo``
    if it began with the id and the name of a call that was whole, so that it is one only if more comes;
    ``at_once`` if it began with name and arguments.
    """

    def __init__(self, index: Place | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = ArgumentText()
        self.ended = False
        self.named_again = False
        self.echo = False
        self.at_once = False
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
        self._by_index: dict[Place, _Parts] = {}
        self._by_id: dict[str, _Parts] = {}
        self._by_name: dict[str, _Parts] = {}
        self._shared_ids: set[str] = set()
        self._shared_places: set[Place] = set()
        self._chars = 0
        self._closed = 0
        self._lost = False

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

    @property
    def doubtful(self) -> bool:
        """Whether a call has no values although arguments came that may be its own (ASK-5).

        Those are what no call owns, what one has beside another's, what came by its name and without an id.
        """
        calls = self._filled()
        bare = [call for call in calls if call.arguments.none]
        if not bare:
            return False
        if self._lost or not all(call.name and call.arguments.sound for call in calls):
            return True
        others = [call for call in calls if not call.arguments.none]
        by_id = {(call.id, call.name) for call in others if call.id or call.at_once}
        without_id = {call.name for call in others if not call.id}
        return any(
            (call.id, call.name) in by_id or (call.id and call.name in without_id)
            for call in bare
            if call.blank
        )

    def add_whole(self, item: Mapping[str, Any]) -> None:
        """Add a call that arrived in one piece."""
        call = self._begin(index_of(item))
        self._fill(call, item)
        call.ended = True

    def add_piece(self, item: Mapping[str, Any]) -> None:
        """Add a piece of a streamed call to the call it belongs to, or begin a new one."""
        index = index_of(item)
        if self._may_be_anyones(index, item):
            self.add_lost(arguments_of(item))
            return
        call = self._candidate(index, item)
        if call is None or _begins_another(call, item):
            echo = _is_echo(self._by_id.get(id_of(item)), item)
            call = self._begin(index)
            call.echo, call.at_once = echo, bool(name_of(item) and arguments_of(item))
        elif _repeats(call, item):
            call.arguments.replace("")
        elif call.named_again and begins_arguments(item):
            call = self._again(call, index)
        if index is not None:
            self._by_index.setdefault(index, call)
        named_again = bool(name_of(item)) and not arguments_of(item) and call.arguments.closed
        self._fill(call, item)
        call.named_again = named_again

    def add_end(self, item: Mapping[str, Any]) -> None:
        """Take the whole arguments of the call that an item is marked with, in place of its pieces."""
        index = index_of(item)
        call = self._candidate(index, item) or self._begin(index)
        self._tell_again(call, item)
        call.ended = True

    def add_lost(self, arguments: str) -> None:
        """Take a piece of arguments of which nobody can say whose it is."""
        self._lost = self._lost or bool(arguments.strip())

    def complete_from(self, other: "CallAssembly") -> None:
        """Give calls without values those that ``other`` tells of the same calls, which came another way.

        A call is the same by its id where that is one call's alone, else by its place among equally many.
        Values of ``other`` that nobody here has count as lost.
        """
        here, there = self._filled(), other._filled()  # noqa: SLF001 - another of the same class
        by_id = _by_own_id(there)
        alone = _by_own_id(here)
        for at, call in enumerate(here):
            if not call.arguments.none:
                continue
            same = by_id.get(call.id) if call.id in alone else None
            if same is None and len(here) == len(there) and call.name in ("", there[at].name):
                same = there[at]
            if same is not None and not same.arguments.none:
                call.arguments.replace(str(same.arguments))
        fewer = _with_values(here) < _with_values(there)
        self._lost = self._lost or other._lost or fewer  # noqa: SLF001 - another of the same class

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
        """The calls that say anything, each once."""
        filled: dict[object, _Parts] = {}
        for at, parts in enumerate(self._calls):
            if parts.arguments or (parts.name and not parts.echo):
                told = (parts.id, parts.name, str(parts.arguments)) if parts.id else at
                filled.setdefault(told, parts)
        return list(filled.values())

    def _candidate(self, index: Place | None, item: Mapping[str, Any]) -> _Parts | None:
        """The call that an item's marks point at.

        Its index tells, unless its id tells of another call than the one there. Under a new index a known id
        may go on with its call, and what has no other mark with the only call that is not whole. Arguments
        beside a name go on with the call of that name which has none yet.
        """
        call_id = id_of(item)
        if (named := self._waiting(index, item)) is not None:
            return named
        own = self._by_id.get(call_id) if call_id else None
        last = self._calls[-1] if self._calls else None
        if index is None:
            if not call_id or last is None:
                return last
            return self._by_id.get(call_id, None if last.id else last)
        call = self._by_index.get(index)
        if call is not None:
            return call if own is None or call.id == call_id else own
        if own is not None:
            return own if _goes_on(own, item) else None
        if call_id or last is None or not self._is_fragment(item):
            return None
        return last

    def _waiting(self, index: Place | None, item: Mapping[str, Any]) -> _Parts | None:
        """The call of the item's name, where neither index nor id tells of another one."""
        call = self._by_name.get(name_of(item))
        if call is None or call.arguments.closed or not arguments_of(item) or _anew(call, item):
            return None
        placed = None if index is None else self._by_index.get(index)
        is_placed = placed is not None and placed.name == call.name
        return None if is_placed or id_of(item) not in ("", call.id) else call

    def _is_fragment(self, item: Mapping[str, Any]) -> bool:
        """Whether a piece without name and id may go on with the newest call."""
        last = self._calls[-1]
        whole = not last.name or last.arguments.closed
        return not (whole or name_of(item) or _anew(last, item))

    def _may_be_anyones(self, index: Place | None, item: Mapping[str, Any]) -> bool:
        """Whether the marks of a piece of arguments fit several calls that still wait for some."""
        if not self._calls or not arguments_of(item):
            return False
        if name_of(item) not in ("", self._calls[-1].name):
            return False
        call_id, known = id_of(item), index in self._by_index
        if call_id:
            return call_id in self._shared_ids and not known and not name_of(item)
        if index is None or index in self._shared_places:
            return self._others_open()
        return not known and not name_of(item) and self._is_fragment(item) and self._others_open()

    def _others_open(self) -> bool:
        """Whether a call before the newest one may still get arguments; looks at each once."""
        others = len(self._calls) - 1
        while self._closed < others and self._calls[self._closed].arguments.closed:
            self._closed += 1
        return self._closed < others

    def _again(self, call: _Parts, index: Place | None) -> _Parts:
        """Where arguments go that begin anew: a call with an id is repeated, else another one begins."""
        if call.id:
            call.arguments.replace("")
            return call
        another = self._begin(index)
        another.name = call.name
        return another

    def _begin(self, index: Place | None) -> _Parts:
        if len(self._calls) == MAX_CALLS:
            raise _too_large(f"more than {MAX_CALLS} tool calls")
        call = _Parts(index)
        self._calls.append(call)
        if index is not None:
            before = self._by_index.get(index)
            if before is not None and not before.arguments.closed:
                self._shared_places.add(index)
            self._by_index[index] = call
        return call

    def _tell_again(self, call: _Parts, item: Mapping[str, Any]) -> None:
        """Take all of a call once more; what came of its arguments counts where none are told now."""
        before = str(call.arguments)
        call.arguments.replace("")
        self._fill(call, item)
        if call.arguments.none and before.strip():
            call.arguments.replace(before)

    def _fill(self, call: _Parts, item: Mapping[str, Any]) -> None:
        name, arguments = name_of(item), arguments_of(item)
        self._chars += len(name) + len(arguments)
        if self._chars > MAX_CHARS:
            raise _too_large(f"tool calls of more than {MAX_CHARS} characters")
        call.id = call.id or id_of(item)
        if call.id:
            before = self._by_id.get(call.id, call)
            if before is not call and not before.arguments.closed:
                self._shared_ids.add(call.id)
            self._by_id[call.id] = call
        call.name = _joined_name(call.name, name)
        if name:
            self._by_name[call.name] = call
        if len(call.name) > MAX_NAME_CHARS:
            raise _too_large(f"a tool name of more than {MAX_NAME_CHARS} characters")
        call.arguments.add(arguments)
        self._lost = self._lost or holds_more(item)
        call.extra.update(call_extra(item))


def _too_large(what: str) -> PermanentError:
    return PermanentError(f"the model's reply holds {what}", code="model.reply_too_large")


def _by_own_id(calls: Iterable[_Parts]) -> dict[str, _Parts]:
    """The calls that have an id of their own, by it."""
    calls = list(calls)
    counts = Counter(call.id for call in calls)
    return {call.id: call for call in calls if call.id and counts[call.id] == 1}


def _with_values(calls: Iterable[_Parts]) -> int:
    return sum(not call.arguments.none for call in calls)


def _begins_another(call: _Parts, item: Mapping[str, Any]) -> bool:
    """Whether a piece starts a new call although its marks point at ``call``."""
    call_id, name = id_of(item), name_of(item)
    if call_id and call.id:
        return call_id != call.id and (bool(name) or call.arguments.closed)
    if not name or not call.name:
        return False
    if call.arguments:
        return name != call.name or (call.arguments.closed and bool(arguments_of(item)))
    return call.index is None and name != call.name


def _goes_on(call: _Parts, item: Mapping[str, Any]) -> bool:
    """Whether a piece under a new index may be the next one of ``call``, whose id it bears."""
    if call.arguments.closed:
        return False
    name = name_of(item)
    return not name or (name == call.name and bool(arguments_of(item)) and not _anew(call, item))


def _anew(call: _Parts, item: Mapping[str, Any]) -> bool:
    """Whether a piece begins arguments where those of ``call`` have begun already.

    Without a name it may be a value of them.
    """
    if not call.arguments or not begins_arguments(item):
        return False
    return bool(name_of(item)) or not call.arguments.wants_value


def _repeats(call: _Parts, item: Mapping[str, Any]) -> bool:
    """Whether a piece sends the call that it bears the id and the name of once more."""
    repeated = call.id and id_of(item) == call.id and name_of(item) == call.name
    return bool(repeated and begins_arguments(item) and call.arguments.closed)


def _is_echo(own: _Parts | None, item: Mapping[str, Any]) -> bool:
    """Whether a piece says nothing but id and name of a call that is whole."""
    return own is not None and own.arguments.closed and name_of(item) == own.name


def _joined_name(before: str, name: str) -> str:
    """Some servers repeat the name in every piece, few send it in pieces."""
    if not name:
        return before
    return name if name.startswith(before) else before + name
