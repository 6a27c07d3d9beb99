"""A bounded map that forgets what was used longest ago; what is worth keeping its owner decides."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Keeps the ``limit`` values that were asked for last."""

    __slots__ = ("_limit", "_values")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get_or_make(self, key: K, make: Callable[[K], V]) -> V:
        """The value kept for ``key``, or else ``make(key)``, which is then kept."""
        value = self._values.pop(key, None)
        if value is None:
            value = make(key)
        self._values[key] = value
        if len(self._values) > self._limit:
            del self._values[next(iter(self._values))]
        return value
