"""Remembers what was computed once per tool, as long as the tool's generation is in use."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from session_runtime.registry.names import WireNames
from session_runtime.registry.spec import ToolSpec

T = TypeVar("T")
_GENERATIONS: Final = 4


class SpecMemo(Generic[T]):
    """Values per tool, kept for the generations that asked last.

    A generation is known by its wire names, which it builds once. A model outlives generations, so
    the oldest are forgotten; a forgotten value is computed again and comes out the same.
    """

    def __init__(self, compute: Callable[[ToolSpec, WireNames], T]) -> None:
        self._compute = compute
        self._generations: OrderedDict[int, tuple[WireNames, dict[ToolSpec, T]]] = OrderedDict()

    def get(self, spec: ToolSpec, names: WireNames) -> T:
        """The value of one tool, computed at its first use within a generation."""
        values = self._values(names)
        value = values.get(spec)
        if value is None:
            value = values[spec] = self._compute(spec, names)
        return value

    def _values(self, names: WireNames) -> dict[ToolSpec, T]:
        key = id(names)
        if key not in self._generations:
            self._generations[key] = (names, {})
            if len(self._generations) > _GENERATIONS:
                self._generations.popitem(last=False)
        self._generations.move_to_end(key)
        return self._generations[key][1]
