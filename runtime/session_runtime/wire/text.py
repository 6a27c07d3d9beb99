"""Text that leaves the process: encodable, and unable to take over a terminal (SEC-4)."""

import unicodedata
from typing import Final

_STEERING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_HARMLESS: Final = frozenset("\n\t\u200c\u200d")  # the last two join letters and emoji


def well_formed(text: str) -> str:
    """Join surrogate pairs and replace lone halves by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def printable(text: str) -> str:
    """Show what could steer a terminal (controls, direction marks) as escapes; keep line ends."""
    if text.isprintable():
        return text
    return "".join(repr(char)[1:-1] if _steers(char) else char for char in text)


def _steers(char: str) -> bool:
    return char not in _HARMLESS and unicodedata.category(char) in _STEERING
