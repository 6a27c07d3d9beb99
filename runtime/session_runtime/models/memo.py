"""Remembers what was computed once per tool, as long as the tool is in use."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from session_runtime.registry.spec import ToolSpec

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SpecMemo(Generic[K, T]):
    """Values per tool and form in which it is shown, such as its wire name; shared by all asks.

    A model outlives generations: what it remembers of a tool goes when the last generation that has the
    tool does.
    """

    def __init__(self, compute: Callable[[ToolSpec, K], T]) -> None:
        self._compute = compute
        self._values: WeakKeyDictionary[ToolSpec, dict[K, T]] = WeakKeyDictionary()

    def get(self, spec: ToolSpec, form: K) -> T:
        """The value of one tool in one form, computed at its first use."""
        values = self._values.setdefault(spec, {})
        value = values.get(form)
        if value is None:
            value = values[form] = self._compute(spec, form)
        return value
