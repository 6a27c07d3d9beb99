"""What a misspelt name may have meant; which names may be told is up to the caller."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

LIKENESS: Final = 0.7
MAX_CHARS: Final = 256  # comparing takes longer the longer a word is, and no name is this long


def nearest(word: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Find at most ``count`` known names like ``word``, the most like it first; case does not matter.

    One that differs in case only is returned alone; none may be like it.
    """
    if len(word) > MAX_CHARS:
        return []
    folded = word.casefold()
    spellings = {spelling.casefold(): spelling for spelling in known}
    if folded in spellings:
        return [spellings[folded]]
    close = get_close_matches(folded, spellings, n=count, cutoff=LIKENESS)
    return [spellings[each] for each in close]


def hint(word: str, known: Iterable[str], count: int = 1) -> str:
    """Ask ``did you mean 'a' or 'b'?``; empty if no known name is like ``word``."""
    names = " or ".join(map(repr, nearest(word, known, count)))
    return f"did you mean {names}?" if names else ""
