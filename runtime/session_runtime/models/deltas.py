"""Cuts a finished text into the few pieces in which a player without a network lets it arrive."""

import re
from typing import Final

from session_runtime.models.base import OnText

_PIECES: Final = 4


def emit(text: str, on_text: OnText) -> None:
    """Tell ``text`` in up to four pieces that join to it exactly, cut at blanks where there are any."""
    words = re.findall(r"\S+\s*|\s+", text)
    units = words if len(words) > 1 else list(text)
    size = -(-len(units) // _PIECES) or 1
    for start in range(0, len(units), size):
        on_text("".join(units[start : start + size]))
