"""Remembers what was computed once per tool, as long as the tool is in use."""

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from session_runtime.registry.spec import ToolSpec

T = TypeVar("T")


class SpecMemo(Generic[T]):
    """Values per tool and wire name, shared by all asks.

    A model outlives generations: what it remembers of a tool goes when the last generation that has the
    tool does.
    """

    def __init__(self, compute: Callable[[ToolSpec, str], T]) -> None:
        self._compute = compute
        self._values: WeakKeyDictionary[ToolSpec, dict[str, T]] = WeakKeyDictionary()

    def get(self, spec: ToolSpec, wire_name: str) -> T:
        """The value of one tool under one name, computed at its first use."""
        values = self._values.setdefault(spec, {})
        value = values.get(wire_name)
        if value is None:
            value = values[wire_name] = self._compute(spec, wire_name)
        return value
