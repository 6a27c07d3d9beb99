"""Which tools of one catalogue are revoked at the moment; patterns are revoked in ``revocations``."""

from collections.abc import Mapping
from dataclasses import dataclass

from session_runtime.registry.masks import matching
from session_runtime.registry.patterns import is_name
from session_runtime.registry.revocation_file import Revocation
from session_runtime.registry.revocations import Revocations


@dataclass(frozen=True, slots=True)
class Matching:
    """The tools that a pattern matches, revoked or not; if none, a name that it may have meant."""

    tools: tuple[str, ...]
    nearest: str | None = None


class RevokedTools:
    """The revoked ones among the tools at these ``positions``, as they are now (REL-9).

    A pattern is compared with the names once and not again at each change: that takes milliseconds for
    thousands of tools.
    """

    def __init__(self, revocations: Revocations, positions: Mapping[str, int]) -> None:
        self._revocations = revocations
        self._positions = positions
        self._masks: dict[str, int] = {}
        self._revision = -1
        self._mask = 0
        self._names: frozenset[str] = frozenset()
        self._refresh()

    @property
    def mask(self) -> int:
        """The revoked tools as a mask."""
        self._refresh()
        return self._mask

    @property
    def names(self) -> frozenset[str]:
        """The revoked tools by canonical name; the same object until something changes."""
        self._refresh()
        return self._names

    def by(self, name: str) -> Revocation | None:
        """Give the revocation of a tool; None if it may be called."""
        return self._revocations.blocks(name)

    def matching(self, pattern: str) -> tuple[str, ...]:
        """The tools that a pattern matches, revoked or not."""
        self._refresh()
        return self._among(self._match(pattern))

    def _refresh(self) -> None:
        revision = self._revocations.revision
        if revision == self._revision:
            return
        patterns = [revocation.pattern for revocation in self._revocations.list()]
        self._masks = {pattern: self._match(pattern) for pattern in patterns}
        mask = 0
        for each in self._masks.values():
            mask |= each
        self._mask, self._names, self._revision = mask, frozenset(self._among(mask)), revision

    def _match(self, pattern: str) -> int:
        found = self._masks.get(pattern)
        if found is not None:
            return found
        if not is_name(pattern):
            return matching([pattern], self._positions)
        at = self._positions.get(pattern)
        return 0 if at is None else 1 << at

    def _among(self, mask: int) -> tuple[str, ...]:
        return tuple(name for name, at in self._positions.items() if mask >> at & 1)
