"""What gateways do wrong on the wire ``anthropic``, as edits of what a correct service sends."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Final

from session_runtime.testing.replies import Edit
from session_runtime.wire.strict import strict_json

Object = dict[str, Any]
_START: Final = "content_block_start"
_DELTA: Final = "content_block_delta"
_STOP: Final = "content_block_stop"


def _streamed(objects: list[Object]) -> bool:
    return bool(objects[0]["type"] == "message_start")


def _without(name: str, item: Object) -> Object:
    return {key: value for key, value in item.items() if key != name}


def _each_event(change: Callable[[Object], Object], objects: list[Object]) -> list[Object]:
    return [change(each) for each in objects]


def _at_first_index(event: Object) -> Object:
    return {**event, "index": 0} if "index" in event else event


def _each_call(change: Callable[[Object], Object], objects: list[Object]) -> list[Object]:
    """The same objects with each block that is a call changed where it begins, or where it stands."""
    for each in objects:
        if _is_call(each.get("content_block", {})):
            each["content_block"] = change(each["content_block"])
        if "content" in each:
            each["content"] = [
                change(block) if _is_call(block) else block for block in each["content"]
            ]
    return objects


def _is_call(block: Object) -> bool:
    return bool(block.get("type") == "tool_use")


def _unmarked(objects: list[Object]) -> list[Object]:
    without_ids = _each_call(partial(_without, "id"), objects)
    return _each_event(partial(_without, "index"), without_ids)


def _groups(objects: list[Object]) -> Iterator[list[Object]]:
    """The events of each block that is a call."""
    for each in objects:
        if _is_call(each.get("content_block", {})):
            yield [other for other in objects if other.get("index") == each["index"]]


def _whole_at_once(objects: list[Object]) -> list[Object]:
    """A block begins with all its arguments, and no pieces follow."""
    for start, *others in _groups(objects):
        pieces = [each["delta"]["partial_json"] for each in others if each["type"] == _DELTA]
        start["content_block"] = {**start["content_block"], "input": strict_json("".join(pieces))}
    return [each for each in objects if each.get("delta", {}).get("type") != "input_json_delta"]


def _as_text(objects: list[Object]) -> list[Object]:
    """A block begins with ``""`` for arguments that are still to come."""
    return _each_call(lambda block: {**block, "input": block["input"] or ""}, objects)


def _repeated_calls(objects: list[Object]) -> list[Object]:
    """All calls come once more behind the others."""
    if not _streamed(objects):
        calls = [block for block in objects[0]["content"] if _is_call(block)]
        objects[0]["content"] = [*objects[0]["content"], *calls]
        return objects
    groups = list(_groups(objects))
    begin = 1 + max((each["index"] for each in objects if "index" in each), default=-1)
    again = [{**event, "index": begin + at} for at, group in enumerate(groups) for event in group]
    return [*objects[:-2], *again, *objects[-2:]]


def _interleaved(objects: list[Object]) -> list[Object]:
    """The first events of all blocks, then the second ones, and so on."""
    placed = [each for each in objects if "index" in each]
    counts: dict[int, int] = {}
    places: list[tuple[int, Object]] = []
    for each in placed:
        at = each["index"]
        counts[at] = counts.get(at, -1) + 1
        places.append((counts[at], each))
    ordered = [each for _, each in sorted(places, key=itemgetter(0))]
    rest = [each for each in objects if "index" not in each]
    return [*rest[:1], *ordered, *rest[1:]]


def _words_as_indexes(objects: list[Object]) -> list[Object]:
    """A word is what events, which come by turns, have for an index."""

    def worded(event: Object) -> Object:
        return {**event, "index": f"block_{event['index']}"} if "index" in event else event

    return _each_event(worded, _interleaved(objects))


def _beside(by: int, objects: list[Object]) -> list[Object]:
    """Pieces have an index beside that of their block."""
    return [
        {**each, "index": each["index"] + by} if each["type"] == _DELTA else each
        for each in objects
    ]


def _astray(objects: list[Object]) -> list[Object]:
    """The arguments of all calls come when all have begun, for blocks that there are not."""
    return _beside(10, _interleaved(objects))


def _under(key: str, objects: list[Object]) -> list[Object]:
    """Arguments come whole and under another key."""

    def moved(block: Object) -> Object:
        return {**_without("input", block), key: block["input"]}

    return _each_call(moved, _whole_at_once(objects) if _streamed(objects) else objects)


def _empty_deltas(objects: list[Object]) -> list[Object]:
    """Between any two events stand some that say nothing, and one that nobody knows."""
    if not _streamed(objects):
        return objects
    nothing: list[Object] = [
        {"type": "ping"},
        {"type": _DELTA, "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": _DELTA, "index": 0, "delta": None},
        {"type": "news", "news": "none"},
    ]
    return [objects[0], *(each for event in objects[1:] for each in (*nothing, event))]


def _without_reason(objects: list[Object]) -> list[Object]:
    for each in objects:
        for head in (each, each.get("delta", {})):
            if "stop_reason" in head:
                head["stop_reason"] = None
    return objects


def _without_kind(kind: str, objects: list[Object]) -> list[Object]:
    return [each for each in objects if each["type"] != kind]


EDITS: Final[Mapping[str, Edit]] = {
    "index_missing": partial(_each_event, partial(_without, "index")),
    "index_shared": partial(_each_event, _at_first_index),
    "id_missing": partial(_each_call, partial(_without, "id")),
    "marks_missing": _unmarked,
    "arguments_object": _whole_at_once,
    "arguments_blank_first": _as_text,
    "call_repeated": _repeated_calls,
    "interleaved": _interleaved,
    "empty_deltas": _empty_deltas,
    "finish_missing": _without_reason,
    "index_word": _words_as_indexes,
    "index_before": partial(_beside, -1),
    "index_behind": partial(_beside, 1),
    "pieces_astray": _astray,
    "arguments_as_parameters": partial(_under, "parameters"),
    "arguments_as_args": partial(_under, "args"),
    "end_missing": partial(_without_kind, "message_stop"),
    "end_of_calls_missing": partial(_without_kind, _STOP),
}
