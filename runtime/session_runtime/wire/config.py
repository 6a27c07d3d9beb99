"""JSON of edits of the configuration, as they come over HTTP; what may be edited is decided in ``app``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from session_runtime.wire.fields import Fields, raise_if_any
from session_runtime.wire.strict import shown

_ROLLBACK_FIELDS: Final = ("number", "include")


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Back to the entry ``number`` of the history, with what of ``include`` would stay otherwise."""

    number: int
    include: tuple[str, ...]


def edits_from_json(data: object) -> Mapping[str, Any]:
    """Read an object of dotted keys and their values; null is for a key that shall not be there."""
    problems: list[str] = []
    fields = Fields(data, "", problems)
    if not fields.data and not problems:
        fields.complain("", 'is empty; send keys and values, such as {"ask.max_steps": 8}')
    raise_if_any(problems)
    return fields.data


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
