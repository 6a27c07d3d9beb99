"""What may stand around thinking or an envelope without being seen: blanks, and marks of no width."""

import re
from typing import Final

_UNSEEN: Final = r"[\s\u200b-\u200d\u2060\ufeff]"
_BEFORE: Final = re.compile(f"{_UNSEEN}*+")
_BEHIND: Final = "\u200b\u200c\u200d\u2060\ufeff"


def without_before(text: str) -> str:
    """A text from its first visible character on."""
    found = _BEFORE.match(text)
    return text[found.end() :] if found else text


def without_around(text: str) -> str:
    """A text from its first visible character on, and without blanks at its end."""
    return without_before(text).rstrip().rstrip(_BEHIND).rstrip()
