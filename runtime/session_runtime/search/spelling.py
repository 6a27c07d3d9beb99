"""Which known words are one letter away from a misspelt one; whether one is meant, ``rank`` decides."""

import zlib
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

SHORTEST = 4
LONGEST = 24


class Spelling:
    """Finds words at most one letter (changed, missing, added, or two swapped) away.

    Two such words share a form that both have after leaving out at most one letter; the forms are
    held as sorted checksums, and what a checksum finds is compared before it is believed.
    """

    def __init__(self, words: Sequence[str], table: npt.NDArray[np.uint64]) -> None:
        self.words = words
        self.table = table
        self._entries = table.data  # of which single ones are read faster

    def near(self, word: str) -> list[str]:
        """The known words one letter away from ``word``, in alphabetical order."""
        if not _correctable(word):
            return []
        forms = _forms(word)
        first = np.searchsorted(self.table, np.array(forms, dtype=np.uint64) << np.uint64(32))
        found: set[str] = set()
        table = self._entries
        for form, at in zip(forms, first.tolist(), strict=True):
            while at < len(table) and table[at] >> 32 == form:
                found.add(self.words[table[at] & 0xFFFFFFFF])
                at += 1
        return sorted(known for known in found if known != word and one_letter_apart(word, known))


def build_spelling(words: Collection[str], before: Spelling | None) -> Spelling:
    """Build the table; ``before`` knows the first of the same words."""
    if before is not None and len(before.words) == len(words):
        return before
    known = 0 if before is None else len(before.words)
    table = np.empty(0, dtype=np.uint64) if before is None else before.table
    listed = tuple(words)
    entries = [
        form << 32 | number
        for number, word in enumerate(listed[known:], known)
        if _correctable(word)
        for form in _forms(word)
    ]
    new = np.sort(np.array(entries, dtype=np.uint64))
    return Spelling(listed, np.insert(table, np.searchsorted(table, new), new))


def _correctable(word: str) -> bool:
    return SHORTEST <= len(word) <= LONGEST and word.isascii() and word.isalpha()


def _forms(word: str) -> list[int]:
    text = word.encode()
    shorter = {text[:cut] + text[cut + 1 :] for cut in range(len(text))}
    return [zlib.crc32(form) for form in (text, *shorter)]


def one_letter_apart(left: str, right: str) -> bool:
    """Whether texts differ by one letter at most: changed, missing, added, or two swapped."""
    if abs(len(left) - len(right)) > 1:
        return False
    start = 0
    shorter = min(len(left), len(right))
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    here, there = left[start : len(left) - end], right[start : len(right) - end]
    swapped = len(here) == 2 and here == there[::-1]
    return swapped or max(len(here), len(there)) <= 1
