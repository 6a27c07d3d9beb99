"""Sets of tools as bit masks over a list of names; what a mask stands for its owner decides."""

from collections.abc import Collection, Iterable, Mapping

from session_runtime.registry.patterns import Patterns


def matching(patterns: Iterable[str], positions: Mapping[str, int]) -> int:
    """The mask of the names that one of the patterns matches."""
    wanted = Patterns(patterns)
    return bits([position for name, position in positions.items() if name in wanted])


def bits(positions: Collection[int]) -> int:
    """The mask in which these bits are set."""
    if not positions:
        return 0
    buffer = bytearray(max(positions) // 8 + 1)
    for position in positions:
        buffer[position // 8] |= 1 << position % 8
    return int.from_bytes(buffer, "little")
