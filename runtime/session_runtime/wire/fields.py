"""One JSON object from outside, read field by field; which fields there are its reader decides."""

from collections.abc import Callable, Mapping, Set
from types import MappingProxyType
from typing import Any, Final, TypeVar

from session_runtime.errors import RequestError
from session_runtime.spelling import hint
from session_runtime.types import NOTHING, JsonObject
from session_runtime.wire.strict import shown
from session_runtime.wire.text import well_formed

T = TypeVar("T")

MAX_ITEMS: Final = 10_000
MAX_DEADLINE_S: Final = 1e9
_MAX_PROBLEMS: Final = 20


class Fields:
    """One JSON object being read: typed fields, problems gathered under their path."""

    def __init__(self, data: object, path: str, problems: list[str]) -> None:
        self.path = path
        self.problems = problems
        self.data: Mapping[str, Any] = {}
        if isinstance(data, dict):
            self.data = data
        else:
            self.complain("", f"must be an object, not {shown(data)}")

    def complain(self, name: str, problem: str) -> None:
        """Note one problem of a field; of the object itself without a name."""
        place = ".".join(part for part in (self.path, name) if part)
        self.problems.append(f"{place or 'the request'}: {problem}")

    def refuse_unknown(self, known: tuple[str, ...]) -> None:
        """Complain about fields that are not among the known ones."""
        for name in self.data:
            if name in known or len(self.problems) > _MAX_PROBLEMS:
                continue
            way_out = hint(name, known) or f"known are {', '.join(known)}"
            self.complain("", f"unknown field {shown(name)}; {way_out}")

    def unknown(self, known: Set[str]) -> JsonObject:
        """The fields that are not among the known ones."""
        extra = {name: value for name, value in self.data.items() if name not in known}
        return MappingProxyType(extra) if extra else NOTHING

    def text(self, name: str, *, limit: int | None = None, blank: bool = True) -> str | None:
        """A text of at most ``limit`` characters; None if it is absent."""
        value = self.data.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.complain(name, f"must be text, not {shown(value)}")
            return None
        if limit is not None and len(value) > limit:
            self.complain(name, f"has {len(value)} characters, at most {limit} are allowed")
        if not blank and not value.strip():
            self.complain(name, "is blank; leave it out or fill it in")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false if it is absent."""
        value = self.data.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.complain(name, f"must be true or false, not {shown(value)}")
        return False

    def seconds(self, name: str) -> float | None:
        """A number of seconds above 0; None if it is absent."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            self.complain(name, f"must be a number of seconds above 0, not {shown(value)}")
            return None
        return float(min(value, MAX_DEADLINE_S))

    def items(self, name: str, read: Callable[[object, str], T]) -> tuple[T, ...]:
        """A list, each item read with its path; empty if it is absent."""
        value = self.data.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.complain(name, f"must be a list, not {shown(value)}")
            return ()
        if len(value) > MAX_ITEMS:
            self.complain(name, f"has {len(value)} items, at most {MAX_ITEMS} are allowed")
            return ()
        place = ".".join(part for part in (self.path, name) if part)
        return tuple(read(item, f"{place}[{index}]") for index, item in enumerate(value))


def raise_if_any(problems: list[str]) -> None:
    """Raise one RequestError that lists the problems, if there are any."""
    if problems:
        tail = ["and more"] if len(problems) > _MAX_PROBLEMS else []
        raise RequestError(well_formed("; ".join(problems[:_MAX_PROBLEMS] + tail)))
