"""What compatible servers do wrong on the wire ``chat``, as edits of what a correct one sends."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from operator import itemgetter
from typing import Any, Final

from session_runtime.testing.replies import Edit

Object = dict[str, Any]
CallEdit = Callable[[Object], Object | None]


def _parts(objects: list[Object]) -> Iterator[Object]:
    """The delta or message of each object that has one."""
    for each in objects:
        for choice in each["choices"]:
            yield choice.get("delta", choice.get("message"))


def _each_call(change: CallEdit, objects: list[Object]) -> list[Object]:
    """The same objects with each call, or piece of one, changed; None takes it out."""
    for part in _parts(objects):
        if calls := part.get("tool_calls"):
            part["tool_calls"] = [new for call in calls if (new := change(call)) is not None]
    return objects


def _without(name: str, call: Object) -> Object:
    return {key: value for key, value in call.items() if key != name}


def _at_first_index(call: Object) -> Object:
    return {**call, "index": 0}


def _unmarked(call: Object) -> Object:
    return _without("id", _without("index", call))


def _as_object(objects: list[Object]) -> list[Object]:
    """Arguments as an object: a stream sends the whole of it in place of the first piece."""
    texts: dict[int, str] = {}

    def gather(call: Object) -> Object:
        at = call.get("index", len(texts))
        texts[at] = texts.get(at, "") + call["function"]["arguments"]
        return call

    def replaced(call: Object) -> Object | None:
        at = call.get("index", next(iter(texts), 0))
        if (text := texts.pop(at, None)) is None:
            return None
        return {**call, "function": {**call["function"], "arguments": json.loads(text)}}

    return _each_call(replaced, _each_call(gather, objects))


def _late_names(objects: list[Object]) -> list[Object]:
    """The name comes with the last piece of the arguments."""
    pieces = [call for part in _parts(objects) for call in part.get("tool_calls") or ()]
    names: dict[int, str] = {}
    for call in pieces:
        if "index" in call and "name" in call["function"]:
            names[call["index"]] = call["function"].pop("name")
    for call in reversed(pieces):
        if "index" in call and call["index"] in names:
            call["function"]["name"] = names.pop(call["index"])
    return objects


def _split_names(objects: list[Object]) -> list[Object]:
    """The name comes in two pieces."""
    for part in _parts(objects):
        calls = part.get("tool_calls") or ()
        part_calls = [half for call in calls for half in _name_halves(call)]
        if part_calls:
            part["tool_calls"] = part_calls
    return objects


def _name_halves(call: Object) -> list[Object]:
    name = call["function"].get("name")
    if "index" not in call or not name:
        return [call]
    first = {**call, "function": {**call["function"], "name": name[:3]}}
    return [first, {"index": call["index"], "function": {"name": name[3:]}}]


def _repeated_names(objects: list[Object]) -> list[Object]:
    """Each piece says again whose it is."""
    names: dict[int, Object] = {}

    def repeat(call: Object) -> Object:
        known = names.setdefault(call.get("index", 0), call)
        if "index" not in call:
            return call
        function = {**call["function"], "name": known["function"]["name"]}
        return {**call, "id": known["id"], "function": function}

    return _each_call(repeat, objects)


def _repeated_calls(objects: list[Object]) -> list[Object]:
    """All calls are sent once more at the end."""
    calls = [call for part in _parts(objects) for call in part.get("tool_calls") or ()]
    if "message" in objects[0]["choices"][0]:
        next(_parts(objects))["tool_calls"] = [*calls, *calls]
        return objects
    again = {"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}
    return [*objects[:-1], {**objects[0], **again}, objects[-1]]


def _interleaved(objects: list[Object]) -> list[Object]:
    """The first pieces of all calls, then the second ones, and so on."""
    calls = [each for each in objects if _indexes(each)]
    counts: dict[int, int] = {}
    places: list[tuple[int, Object]] = []
    for each in calls:
        (at,) = _indexes(each)
        counts[at] = counts.get(at, -1) + 1
        places.append((counts[at], each))
    if not calls:
        return objects
    begin = objects.index(calls[0])
    ordered = [each for _, each in sorted(places, key=itemgetter(0))]
    return [*objects[:begin], *ordered, *objects[begin + len(calls) :]]


def _counted(objects: list[Object]) -> list[Object]:
    """The index counts pieces, not calls."""
    numbers = count()

    def counted(call: Object) -> Object:
        return {**call, "index": next(numbers)} if "index" in call else call

    return _each_call(counted, objects)


def _repeated_and_counted(objects: list[Object]) -> list[Object]:
    return _counted(_repeated_names(objects))


def _one_id_by_turns(objects: list[Object]) -> list[Object]:
    """Each piece has its index and the id that is that of all calls."""
    return _interleaved(_each_call(lambda call: {**call, "id": "call_same"}, objects))


def _words_as_indexes(objects: list[Object]) -> list[Object]:
    """A word is what pieces, which come by turns, have for an index."""

    def worded(call: Object) -> Object:
        return {**call, "index": f"call_{call['index']}"} if "index" in call else call

    return _each_call(worded, _interleaved(objects))


def _new_ids(objects: list[Object]) -> list[Object]:
    """Each piece has an id of its own, the name, and the index 0."""
    numbers = count()

    def renewed(call: Object) -> Object:
        if "index" not in call:
            return call
        return {**call, "index": 0, "id": f"call_{next(numbers)}"}

    return _each_call(renewed, _repeated_names(objects))


def _astray(objects: list[Object]) -> list[Object]:
    """The arguments of all calls follow behind their names, under indexes that no call has."""

    def elsewhere(call: Object) -> Object:
        if "index" not in call or "id" in call:
            return call
        return {**call, "index": call["index"] + 10}

    return _each_call(elsewhere, _interleaved(objects))


def _under(key: str, objects: list[Object]) -> list[Object]:
    """Arguments stand under another key."""

    def moved(call: Object) -> Object:
        function = {**call["function"]}
        if arguments := function.pop("arguments", None):
            function[key] = arguments
        return {**call, "function": function}

    return _each_call(moved, objects)


def _indexes(chunk: Object) -> list[int]:
    """The indexes of the pieces of calls in one chunk."""
    found = [call for part in _parts([chunk]) for call in part.get("tool_calls") or ()]
    return [call["index"] for call in found if "index" in call]


def _empty_deltas(objects: list[Object]) -> list[Object]:
    """Between any two pieces stands one that says nothing."""
    if "message" in objects[0]["choices"][0]:
        return objects
    nothing: list[Object] = [
        {**objects[0], "choices": []},
        {**objects[0], "choices": [{"index": 0, "delta": {}}]},
        {**objects[0], "choices": [{"index": 0, "delta": {"content": "", "tool_calls": None}}]},
    ]
    return [each for piece in objects for each in (*nothing, piece)]


def _without_reason(objects: list[Object]) -> list[Object]:
    for each in objects:
        for choice in each["choices"]:
            choice["finish_reason"] = None
    return objects


EDITS: Final[Mapping[str, Edit]] = {
    "index_missing": partial(_each_call, partial(_without, "index")),
    "index_shared": partial(_each_call, _at_first_index),
    "id_missing": partial(_each_call, partial(_without, "id")),
    "marks_missing": partial(_each_call, _unmarked),
    "arguments_object": _as_object,
    "name_late": _late_names,
    "name_in_pieces": _split_names,
    "name_repeated": _repeated_names,
    "call_repeated": _repeated_calls,
    "interleaved": _interleaved,
    "empty_deltas": _empty_deltas,
    "finish_missing": _without_reason,
    "index_counts": _counted,
    "index_counts_names": _repeated_and_counted,
    "index_word": _words_as_indexes,
    "id_shared_by_turns": _one_id_by_turns,
    "id_new_in_each_piece": _new_ids,
    "pieces_astray": _astray,
    "arguments_as_parameters": partial(_under, "parameters"),
    "arguments_as_args": partial(_under, "args"),
}
