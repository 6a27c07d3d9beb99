"""Remembers what is computed once for all asks: per tool as long as it is in use, per text for a while."""

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from session_runtime.lru import Lru
from session_runtime.registry.spec import ToolSpec

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

KEPT_TEXT_BYTES: Final = 2_000_000
SHORTEST_KEPT: Final = 1_000
"""A shorter text costs less than its place here, and may be of one ask alone."""


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


class TextMemo:
    """What was written last of texts that most asks have in common, such as the list of their tools.

    Asks that wait for their answers hold one and the same value then, and nobody writes it again.
    """

    def __init__(self, write: Callable[[str], bytes]) -> None:
        self._write = write
        self._written: Lru[str, bytes] = Lru(KEPT_TEXT_BYTES, _bytes_of)

    def get(self, text: str) -> bytes:
        """What ``write`` makes of a text."""
        if len(text) < SHORTEST_KEPT:
            return self._write(text)
        return self._written.get_or_make(text, self._write)


def _bytes_of(text: str, written: bytes) -> int:
    return 4 * len(text) + len(written)
