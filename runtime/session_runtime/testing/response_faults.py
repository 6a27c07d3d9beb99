"""What gateways do wrong on the wire ``responses``, as edits of what a correct service sends."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Final

from session_runtime.testing.replies import Edit

Object = dict[str, Any]
_ADDED: Final = "response.output_item.added"
_DELTA: Final = "response.function_call_arguments.delta"
_DONE: Final = "response.function_call_arguments.done"


def _responses(objects: list[Object]) -> Iterator[Object]:
    """The response that each object tells of, or is."""
    for each in objects:
        if "response" in each:
            yield each["response"]
        elif each.get("object") == "response":
            yield each


def _each_item(change: Callable[[Object], Object], objects: list[Object]) -> list[Object]:
    """The same objects with each item that is a call changed wherever it is told."""
    for each in objects:
        if each.get("item", {}).get("type") == "function_call":
            each["item"] = change(each["item"])
    for response in _responses(objects):
        response["output"] = [
            change(item) if item["type"] == "function_call" else item for item in response["output"]
        ]
    return objects


def _without(name: str, item: Object) -> Object:
    return {key: value for key, value in item.items() if key != name}


def _each_event(change: Callable[[Object], Object], objects: list[Object]) -> list[Object]:
    return [change(each) for each in objects]


def _at_first_index(event: Object) -> Object:
    return {**event, "output_index": 0} if "output_index" in event else event


def _as_object(item: Object) -> Object:
    return {**item, "arguments": json.loads(item["arguments"] or "{}")}


def _objects_as_arguments(objects: list[Object]) -> list[Object]:
    kept = [each for each in objects if each.get("type") != _DELTA]
    for each in kept:
        if each.get("type") == _DONE:
            each["arguments"] = json.loads(each["arguments"])
    return _each_item(_as_object, kept)


def _late_names(objects: list[Object]) -> list[Object]:
    """What announces a call does not say which tool is called."""
    for each in objects:
        if each.get("type") == _ADDED:
            each["item"] = _without("name", each["item"])
    return objects


def _repeated_calls(objects: list[Object]) -> list[Object]:
    """Each call is done twice, and twice in the response."""
    for response in _responses(objects):
        calls = [item for item in response["output"] if item["type"] == "function_call"]
        response["output"] = [*response["output"], *calls]
    done = [each for each in objects if each.get("type") == "response.output_item.done"]
    return [*objects[:-1], *done, objects[-1]]


def _interleaved(objects: list[Object]) -> list[Object]:
    """The first events of all calls, then the second ones, and so on."""
    calls = [each for each in objects if "output_index" in each]
    if not calls:
        return objects
    counts: dict[int, int] = {}
    places: list[tuple[int, Object]] = []
    for each in calls:
        at = each["output_index"]
        counts[at] = counts.get(at, -1) + 1
        places.append((counts[at], each))
    begin = objects.index(calls[0])
    ordered = [each for _, each in sorted(places, key=itemgetter(0))]
    return [*objects[:begin], *ordered, *objects[begin + len(calls) :]]


def _empty_deltas(objects: list[Object]) -> list[Object]:
    """Between any two events stand some that say nothing, and one that nobody knows."""
    if "type" not in objects[0]:
        return objects
    nothing: list[Object] = [
        {"type": "response.output_text.delta", "delta": ""},
        {"type": _DELTA, "delta": "", "output_index": 0},
        {"type": "response.news", "news": "none"},
    ]
    return [objects[0], *(each for event in objects[1:] for each in (*nothing, event))]


def _empty_end(objects: list[Object]) -> list[Object]:
    """The response at the end of the stream has no output."""
    if "response" in objects[-1]:
        objects[-1] = {**objects[-1], "response": {**objects[-1]["response"], "output": []}}
    return objects


def _blank_end(objects: list[Object]) -> list[Object]:
    """What ends a call says that it has no arguments, although they were streamed."""
    if "type" not in objects[0]:
        return objects
    for each in objects:
        if each["type"] == _DONE:
            each["arguments"] = ""
        if each["type"] != _ADDED and "item" in each:
            each["item"] = {**each["item"], "arguments": ""}
        if each is objects[-1]:
            output = [{**item, "arguments": ""} for item in each["response"]["output"]]
            each["response"] = {**each["response"], "output": output}
    return objects


def _pieces_by_turns(objects: list[Object]) -> list[Object]:
    """Nothing but what begins calls and the pieces of their arguments, by turns."""
    if "type" not in objects[0]:
        return objects
    ends = (_DONE, "response.output_item.done")
    return _interleaved([each for each in _empty_end(objects) if each["type"] not in ends])


def _one_id_by_turns(objects: list[Object]) -> list[Object]:
    """All calls have the same ids, and their pieces come by turns."""
    for each in objects:
        if "item_id" in each:
            each["item_id"] = "fc_same"
    same = {"id": "fc_same", "call_id": "call_same"}
    return _pieces_by_turns(_each_item(lambda item: {**item, **same}, objects))


def _words_as_indexes(objects: list[Object]) -> list[Object]:
    """A word is what pieces, which come by turns and have no item, have for an index."""

    def worded(event: Object) -> Object:
        if "output_index" not in event:
            return event
        return {**_without("item_id", event), "output_index": f"item_{event['output_index']}"}

    return _each_event(worded, _pieces_by_turns(objects))


def _astray(objects: list[Object]) -> list[Object]:
    """The arguments of all calls come when all have begun, for items that there are not."""

    def elsewhere(event: Object) -> Object:
        if event.get("type") != _DELTA:
            return event
        return {**_without("item_id", event), "output_index": event["output_index"] + 10}

    return _each_event(elsewhere, _blank_end(_interleaved(objects)))


def _under(key: str, objects: list[Object]) -> list[Object]:
    """Arguments come whole and under another key."""

    def moved(item: Object) -> Object:
        return {**_without("arguments", item), key: item["arguments"]}

    kept = [each for each in objects if each.get("type") not in (_DELTA, _DONE)]
    return _each_item(moved, kept)


EDITS: Final[Mapping[str, Edit]] = {
    "index_missing": partial(_each_event, partial(_without, "output_index")),
    "index_shared": partial(_each_event, _at_first_index),
    "id_missing": partial(_each_item, partial(_without, "call_id")),
    "arguments_object": _objects_as_arguments,
    "name_late": _late_names,
    "call_repeated": _repeated_calls,
    "interleaved": _interleaved,
    "empty_deltas": _empty_deltas,
    "end_empty": _empty_end,
    "end_blank": _blank_end,
    "index_word": _words_as_indexes,
    "id_shared_by_turns": _one_id_by_turns,
    "pieces_astray": _astray,
    "arguments_as_parameters": partial(_under, "parameters"),
    "arguments_as_args": partial(_under, "args"),
}
