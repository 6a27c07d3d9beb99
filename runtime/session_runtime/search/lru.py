"""A bounded map that forgets what was used longest ago; what is worth keeping is decided by its owner."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Keeps the ``limit`` values asked for last."""

    __slots__ = ("_limit", "_values")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get_or_make(self, key: K, make: Callable[[K], V]) -> V:
        """The value kept for ``key``, or else ``make(key)``, which is then kept."""
        values = self._values
        if key in values:
            values[key] = value = values.pop(key)
            return value
        value = make(key)
        values[key] = value
        if len(values) > self._limit:
            del values[next(iter(values))]
        return value
