"""What a model reads in place of a result that is too long, always within the limit (ASK-8b).

Whether a result is too long, and whether the whole is kept, is decided in ``results``.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from session_runtime.handler import Table
from session_runtime.registry.invoke.encode import compact_json, encodable, least_chars
from session_runtime.registry.names import RESULTS_READ

LEAST_CHARS: Final = 500
FIELD_CHARS: Final = 500
EXAMINED: Final = 1_000
NAMED_KEYS: Final = 8
NAME_CHARS: Final = 40


def summarise(value: object, chars: int, limit: int, reference: str | None) -> str:
    """Describe a result of ``chars`` characters in at most ``limit``, which is LEAST_CHARS or more.

    Text is cut in the middle, at line borders where there are some. Objects, arrays and tables become
    a JSON object: ``kind``, ``characters``, ``count``, what fits of the data, ``reference`` if there is
    one, ``note``.
    """
    match value:
        case dict():
            text = _object(value, _Frame("object", chars, len(value), limit, reference))
        case list() | tuple():
            text = _array(value, _Frame("array", chars, len(value), limit, reference))
        case Table():
            text = _table(value, _Frame("table", chars, len(value.rows), limit, reference))
        case str():
            text = _text(value, limit, reference)
        case _:
            text = _text(compact_json(value), limit, reference)
    return encodable(text)


def cut(text: str, chars: int, limit: int) -> str:
    """Give the beginning of a result where there is no room for a summary, and say so if that fits."""
    mark = f" [cut off: {chars} characters]"
    return text[: limit - len(mark)] + mark if limit > 2 * len(mark) else text[:limit]


class _Frame:
    """What all summaries of data say, and how much room it leaves."""

    def __init__(
        self, kind: str, chars: int, count: int, limit: int, reference: str | None
    ) -> None:
        self._head = {"kind": kind, "characters": chars, "count": count}
        self._tail = _how_to_go_on(reference)
        self._limit = limit

    def room(self, data: Mapping[str, object]) -> int:
        """How many characters may still be added to ``data``."""
        return self._limit - len(self.text(data))

    def text(self, data: Mapping[str, object]) -> str:
        """The whole summary."""
        return compact_json({**self._head, **data, **self._tail})


def _how_to_go_on(reference: str | None) -> dict[str, str]:
    if reference is None:
        return {
            "note": "Shortened, and the rest is not kept. Ask the tool for less, or for a part, to see it."
        }
    return {
        "reference": reference,
        "note": f"Shortened. {RESULTS_READ} gives the whole by its reference, from the next turn on.",
    }


def _object(value: Mapping[Any, object], frame: _Frame) -> str:
    """First plain values, so that large neighbours do not push them out; then what the others are."""
    members = list(islice(value.items(), EXAMINED))
    plain = [(key, member) for key, member in members if _is_field(member)]
    data: dict[str, object] = {"fields": {}, "left_out": {}}
    data["fields"] = fields = _that_fit(plain, frame.room(data) * 3 // 4)
    others = ((key, outline(member)) for key, member in members if key not in fields)
    data["left_out"] = _that_fit(others, frame.room(data))
    return frame.text(data)


def _array(value: Sequence[object], frame: _Frame) -> str:
    first = _first_that_fit(value, frame.room({"first": []}))
    if first:
        return frame.text({"first": first})
    return frame.text(_that_fit([("left_out", f"first: {outline(value[0])}")], frame.room({})))


def _table(value: Table, frame: _Frame) -> str:
    data: dict[str, object] = {"columns": [], "rows": []}
    data["columns"] = _first_that_fit(value.columns, frame.room(data) // 2)
    data["rows"] = _first_that_fit(map(list, value.rows), frame.room(data))
    return frame.text(data)


def _that_fit(entries: Iterable[tuple[Any, object]], room: int) -> dict[Any, object]:
    kept: dict[Any, object] = {}
    for key, value in entries:
        if least_chars(key, room) > room:
            continue
        cost = len(compact_json({key: value})) - 1
        if cost <= room:
            kept[key] = value
            room -= cost
    return kept


def _first_that_fit(items: Iterable[object], room: int) -> list[object]:
    kept: list[object] = []
    for item in items:
        if least_chars(item, room) > room:
            break
        room -= len(compact_json(item)) + 1
        if room < 0:
            break
        kept.append(item)
    return kept


def _is_field(value: object) -> bool:
    return not isinstance(value, dict | list | tuple) and (
        least_chars(value, FIELD_CHARS) <= FIELD_CHARS
    )


def outline(value: object) -> str:
    """Say what a piece of data is: its type, its size, and the first keys of an object."""
    match value:
        case dict():
            names = [str(key)[:NAME_CHARS] for key in islice(value, NAMED_KEYS)]
            more = ["..."] if len(value) > len(names) else []
            return f"object of {len(value)}: {', '.join(names + more)}" if names else "object of 0"
        case list() | tuple():
            if not value:
                return "array of 0"
            nested = isinstance(value[0], list | tuple)
            first = f"array of {len(value[0])}" if nested else outline(value[0])
            return f"array of {len(value)}, first: {first}"
        case str():
            return f"text of {len(value)} characters"
        case None:
            return "null"
        case bool():
            return "true or false"
        case _:
            return "number"


def _text(value: str, limit: int, reference: str | None) -> str:
    room = limit - len(_gap(len(value), len(value), len(value), reference))
    beginning = _to_end_of_line(value[: room * 3 // 4])
    end = _from_start_of_line(value[-(room - len(beginning)) :])
    gap = _gap(len(beginning), len(value) - len(end), len(value), reference)
    return f"{beginning}{gap}{end}"


def _gap(start: int, stop: int, chars: int, reference: str | None) -> str:
    way = (
        "They are not kept. Ask the tool for less, or for a part, to see them."
        if reference is None
        else f'{RESULTS_READ} gives them by the reference "{reference}", from the next turn on.'
    )
    return f"\n[Characters {start} to {stop} of {chars} are left out here. {way}]\n"


def _to_end_of_line(text: str) -> str:
    at = text.rfind("\n", len(text) // 2)
    return text if at < 0 else text[:at]


def _from_start_of_line(text: str) -> str:
    return text[text.find("\n", 0, len(text) // 2) + 1 :]
