"""JSON text to and from plain data: strict on the way in, never failing on the way out."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from session_runtime.errors import RequestError
from session_runtime.wire.text import well_formed

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 100_000
"""How many values a request may have; the parser holds up all other threads until it has made them."""

_SOON_BYTES: Final = 64 * 1024
_SOON_MARKS: Final = 1_000
_MARKS: Final = (b",", b"[", b"{")
_REST_OF_TEXT: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_TOO_DEEP: Final = f"it is nested deeper than {MAX_DEPTH} levels"
_MAX_DIGITS: Final = 400
_SHOWN_CHARS: Final = 40
_SHOWN_PATH: Final = 200


def parse_request(body: bytes) -> Any:
    """Parse a request: as ``parse_json``, and at most MAX_VALUES values, which are counted first."""
    if body.count(b",") >= MAX_VALUES and _separators(body, MAX_VALUES) >= MAX_VALUES:
        raise _not_json(f"it has more than {MAX_VALUES} values")
    return parse_json(body)


def is_soon_read(body: bytes) -> bool:
    """Whether a request can be read where others wait for it: within some 5 ms, whatever is in it.

    Not only long ones take a while, but also those of very many small values: what may begin one is counted.
    """
    return len(body) <= _SOON_BYTES and sum(map(body.count, _MARKS)) <= _SOON_MARKS


def _separators(body: bytes, most: int) -> int:
    """How many commas stand outside of texts; no more are counted than ``most``, of values or of texts."""
    found, texts, at = 0, 0, 0
    while max(found, texts // 2) < most:
        opening = body.find(b'"', at)
        found += body.count(b",", at, len(body) if opening < 0 else opening)
        text = None if opening < 0 else _REST_OF_TEXT.match(body, opening + 1)
        if text is None:
            return found
        texts, at = texts + 1, text.end()
    return max(found, texts // 2)


def parse_json(body: bytes | str) -> Any:
    """Parse strict JSON from outside: UTF-8, no NaN, no key given twice, at most 64 levels deep.

    Raises RequestError (``request.json``) that says where and why.
    """
    try:
        text = body.decode("utf-8-sig") if isinstance(body, bytes) else body
        if not text.strip():
            raise _not_json("it is empty")
        return strict_json(text)
    except UnicodeDecodeError as error:
        raise _not_json(f"it is not UTF-8 at byte {error.start}") from None
    except ValueError as error:
        raise _not_json(str(error)) from None


def strict_json(text: str) -> object:
    """Parse strict JSON: no NaN, no key given twice, at most 64 levels deep, whole characters only.

    Takes time in proportion to the text. Raises ValueError with the reason in plain words.
    """
    try:
        data = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return _checked(data)


def strict_json_at(text: str, start: int) -> tuple[object, int]:
    """Parse the strict JSON value that begins at ``start``; returns it and where it ends.

    Takes time in proportion to the value. Raises ValueError like ``strict_json``.
    """
    try:
        data, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return _checked(data), end


def _checked(data: object) -> object:
    problem = _tree_problem(data)
    if problem:
        raise ValueError(problem)
    return data


def to_bytes(data: object) -> bytes:
    """Write compact UTF-8 JSON; never fails for data of JSON types, mappings, sequences and sets.

    Half surrogate pairs become U+FFFD and numbers that JSON cannot hold become null: such values
    come from models and tools, and must not end the answer that carries them.
    """
    try:
        return _ENCODER.encode(data).encode()
    except ValueError:
        return _ENCODER.encode(_cleaned(data)).encode()


def written_request(data: Mapping[str, Any]) -> bytes:
    """Write a request as compact UTF-8 JSON; half surrogate pairs become U+FFFD.

    Raises RequestError that names the first value which no JSON can hold, or no daemon would read.
    """
    try:
        return _ENCODER.encode(data).encode()
    except (TypeError, ValueError, RecursionError):
        problem = _unwritable(data, "", ())
    if problem is not None:
        raise RequestError(well_formed(problem))
    return to_bytes(data)


def shown(value: object) -> str:
    """Return a short form of a value from outside, for an error message."""
    match value:
        case dict():
            return "an object"
        case list():
            return f"a list of {len(value)}"
        case str() if len(value) > _SHOWN_CHARS:
            return f"{json.dumps(value[:_SHOWN_CHARS], ensure_ascii=False)}…"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _unwritable(value: object, path: str, above: tuple[int, ...]) -> str | None:
    """What keeps the value at ``path`` out of JSON; ``above`` are the ids of all that it lies in."""
    match value:
        case None | str() | int():
            return None
        case float():
            return None if math.isfinite(value) else f"{path} is {value}, which JSON cannot hold"
        case Mapping():
            parts = [
                (f"{path}.{name}"[-_SHOWN_PATH:].lstrip("."), of) for name, of in value.items()
            ]
        case list() | tuple() | set() | frozenset():
            parts = [(f"{path}[{at}]", of) for at, of in enumerate(value)]
        case _:
            return f"{path} is a Python {type(value).__name__}, which JSON cannot hold"
    if id(value) in above:
        return f"{path} contains itself, which JSON cannot"
    if len(above) > MAX_DEPTH:
        return f"{path} is nested deeper than {MAX_DEPTH} levels"
    within = (*above, id(value))
    problems = (_unwritable(part, name, within) for name, part in parts)
    return next((problem for problem in problems if problem is not None), None)


def _tree_problem(data: object) -> str | None:
    """Depth and half characters, level by level: the data may be deeper than the stack."""
    level, depth = [data], 0
    while level:
        if broken := next((v for v in level if isinstance(v, str) and not _encodable(v)), None):
            return f"{shown(broken)} holds half of a surrogate pair; send whole characters"
        depth += any(isinstance(value, dict | list) for value in level)
        if depth > MAX_DEPTH:
            return _TOO_DEEP
        level = [child for value in level for child in _children(value)]
    return None


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _cleaned(data: object) -> object:
    match data:
        case str():
            return well_formed(data)
        case float():
            return data if math.isfinite(data) else None
        case Mapping():
            return {well_formed(str(name)): _cleaned(value) for name, value in data.items()}
        case list() | tuple() | set() | frozenset():
            return [_cleaned(value) for value in data]
        case _:
            return data


def _not_json(reason: str) -> RequestError:
    return RequestError(well_formed(f"the body is not usable JSON: {reason}"), code="request.json")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(
            f"{digits[:_SHOWN_CHARS]}… has {len(digits)} digits, too many for a number"
        )
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:_SHOWN_CHARS]} is too large for a number")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, value in pairs:
        if name in data:
            raise ValueError(f"the key {name[:_SHOWN_CHARS]!r} is given twice")
        data[name] = value
    return data


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_DECODER: Final = json.JSONDecoder(
    parse_constant=_refuse_constant,
    parse_int=_whole,
    parse_float=_finite,
    object_pairs_hook=_unique,
)
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
)
