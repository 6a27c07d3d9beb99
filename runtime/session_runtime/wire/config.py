"""JSON of edits of the configuration, as they come over HTTP; what may be edited is decided in ``app``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from session_runtime.wire.fields import Fields, raise_if_any
from session_runtime.wire.strict import shown

MAX_ITEMS: Final = 1_000
MAX_CHARS: Final = 64 * 1024
_NAME_CHARS: Final = 100
_OVER_NETWORK: Final = "can be sent over the network: edit the file on its machine"
_ROLLBACK_FIELDS: Final = ("number", "include")


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Back to the entry ``number`` of the history, with what of ``include`` would stay otherwise."""

    number: int
    include: tuple[str, ...]


def edits_from_json(data: object) -> Mapping[str, Any]:
    """Read an object of dotted keys and their values; null is for a key that shall not be there.

    Raises RequestError for more than MAX_ITEMS of anything, or a text of more than MAX_CHARS characters.
    """
    problems: list[str] = []
    fields = Fields(data, "", problems)
    if not fields.data and not problems:
        fields.complain("", 'is empty; send keys and values, such as {"ask.max_steps": 8}')
    if len(fields.data) > MAX_ITEMS:
        fields.complain("", f"holds {len(fields.data)} keys, at most {MAX_ITEMS} are allowed")
    for name, value in () if problems else fields.data.items():
        if fault := _too_large([name, value]):
            fields.complain(name[:_NAME_CHARS], fault)
    raise_if_any(problems)
    return fields.data


def _too_large(value: object) -> str | None:
    match value:
        case str() if len(value) > MAX_CHARS:
            return f"holds a text of {len(value)} characters, at most {MAX_CHARS} {_OVER_NETWORK}"
        case list() | dict() if len(value) > MAX_ITEMS:
            return f"holds {len(value)} items, at most {MAX_ITEMS} {_OVER_NETWORK}"
        case dict():
            return _too_large(list(value)) or _too_large(list(value.values()))
        case list():
            return next(filter(None, map(_too_large, value)), None)
        case _:
            return None


def rollback_from_json(data: object) -> RollbackRequest:
    """Read which entry to go back to; raises RequestError that lists every problem."""
    problems: list[str] = []
    fields = Fields(data, "", problems)
    fields.refuse_unknown(_ROLLBACK_FIELDS)
    number = fields.data.get("number")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        fields.complain(
            "number", f"must be the number of an entry of the history, not {shown(number)}"
        )
        number = 0
    include = fields.items("include", lambda item, place: _text(item, place, problems))
    raise_if_any(problems)
    return RollbackRequest(number, include)


def _text(item: object, place: str, problems: list[str]) -> str:
    if not isinstance(item, str):
        problems.append(f"{place}: must be text, not {shown(item)}")
        return ""
    return item
