"""A bounded map that forgets what was used longest ago; what is worth keeping its owner decides."""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Keeps what was asked for last, as long as its sizes come to ``limit`` at most; no value is None.

    Without ``size_of`` each value counts one. Threads may share it: two that ask for the same at once
    may both make it.
    """

    __slots__ = ("_limit", "_lock", "_size_of", "_sizes", "_taken", "_values")

    def __init__(self, limit: int, size_of: Callable[[K, V], int] | None = None) -> None:
        self._limit = limit
        self._size_of = size_of
        self._values: dict[K, V] = {}
        self._sizes: dict[K, int] = {}
        self._taken = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    @property
    def taken(self) -> int:
        """The sizes of all that is kept."""
        return self._taken

    def get_or_make(self, key: K, make: Callable[[K], V]) -> V:
        """The value kept for ``key``, or else ``make(key)``, which is then kept unless it is too large."""
        with self._lock:
            value = self._values.pop(key, None)
            if value is not None:
                self._values[key] = value
                return value
        value = make(key)
        size = 1 if self._size_of is None else self._size_of(key, value)
        with self._lock:
            self._keep(key, value, size)
        return value

    def _keep(self, key: K, value: V, size: int) -> None:
        if size > self._limit:
            return
        self._taken += size - self._sizes.get(key, 0)
        self._values[key] = value
        self._sizes[key] = size
        while self._taken > self._limit:
            oldest = next(iter(self._values))
            del self._values[oldest]
            self._taken -= self._sizes.pop(oldest)
