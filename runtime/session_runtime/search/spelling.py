"""Which known words or names are one letter away from a misspelt one; if one is meant, others decide."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import mul

import numpy as np
import numpy.typing as npt

SHORTEST = 4
LONGEST = 24
BITS_PER_FORM = 8
TOO_SHORT = 2
_FACTORS = [pow(0x9E3779B97F4A7C15, power, 1 << 64) for power in range(1, LONGEST + 1)]
_BY_PLACE = np.array(_FACTORS, dtype=np.uint64)


class Spelling:
    """Finds words at most one letter (changed, missing, added, or two swapped) away.

    Two such words share a form that both have after leaving out at most one letter; the forms are
    held as sorted checksums, and what a checksum finds is compared before it is believed. A bit for
    each of some times as many checksums says of most that they are not among them.
    """

    def __init__(self, words: Sequence[str], table: npt.NDArray[np.uint64]) -> None:
        self.words = words
        self.table = table
        self._entries = table.data  # of which single ones are read faster
        self._mask = (1 << (BITS_PER_FORM * len(table)).bit_length()) - 1
        held = np.zeros(self._mask + 1, dtype=np.bool_)
        held[table >> np.uint64(32) & np.uint64(self._mask)] = True
        self._bits = np.packbits(held, bitorder="little").tobytes()

    def near(self, word: str) -> list[str]:
        """The known words one letter away from ``word``, in alphabetical order."""
        if not _correctable(word):
            return []
        table, bits, mask = self._entries, self._bits, self._mask
        found: set[str] = set()
        for form in _forms(word):
            if not bits[(form & mask) >> 3] >> (form & 7) & 1:
                continue
            at = bisect_left(table, form << 32)
            while at < len(table) and table[at] >> 32 == form:
                found.add(self.words[table[at] & 0xFFFFFFFF])
                at += 1
        return sorted(known for known in found if known != word and one_letter_apart(word, known))


@dataclass(frozen=True, slots=True, eq=False)
class NearTexts:
    """Finds which of many texts differ from another by one letter, without comparing it to each.

    Such texts begin or end alike, and their ``lengths`` hardly differ; ``ends`` are their first and last
    characters.
    """

    texts: tuple[str, ...]
    lengths: npt.NDArray[np.int32]
    ends: tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]

    def near(self, text: str) -> list[str]:
        """The texts at most one letter away, in their order."""
        if not text:
            return []
        alike = (self.ends[0] == ord(text[0])) | (self.ends[1] == ord(text[-1]))
        alike |= self.lengths <= TOO_SHORT  # may differ at both ends: ab and ba
        alike &= np.abs(self.lengths - len(text)) <= 1
        near = (self.texts[at] for at in alike.nonzero()[0].tolist())
        return [other for other in near if one_letter_apart(text, other)]


def near_texts(texts: Iterable[str]) -> NearTexts:
    """Prepare looking for some texts, none of them empty."""
    told = tuple(texts)
    count = len(told)
    return NearTexts(
        told,
        np.fromiter(map(len, told), np.int32, count),
        (
            np.fromiter((ord(text[0]) for text in told), np.uint32, count),
            np.fromiter((ord(text[-1]) for text in told), np.uint32, count),
        ),
    )


def build_spelling(words: Collection[str], before: Spelling | None) -> Spelling:
    """Build the table; ``before`` knows the first of the same words."""
    if before is not None and len(before.words) == len(words):
        return before
    known = 0 if before is None else len(before.words)
    table = np.empty(0, dtype=np.uint64) if before is None else before.table
    listed = tuple(words)
    by_length: dict[int, list[int]] = defaultdict(list)
    for number, word in enumerate(listed[known:], known):
        if _correctable(word):
            by_length[len(word)].append(number)
    added = [_entries(listed, numbers) for numbers in by_length.values()]
    if not added:
        return Spelling(listed, table)
    new = np.sort(np.concatenate(added))
    return Spelling(listed, np.insert(table, np.searchsorted(table, new), new))


def _correctable(word: str) -> bool:
    return SHORTEST <= len(word) <= LONGEST and word.isascii() and word.isalpha()


def _forms(word: str) -> set[int]:
    """The checksums of a word and of what it is without one letter: sums of letters by their places."""
    letters = word.encode()
    shorter = sum(map(mul, letters[1:], _FACTORS))
    sums = [sum(map(mul, letters, _FACTORS)), shorter]
    for left, right, factor in zip(letters, letters[1:], _FACTORS, strict=False):
        shorter += (left - right) * factor
        sums.append(shorter)
    return {total >> 32 & 0xFFFFFFFF for total in sums}


def _entries(listed: Sequence[str], numbers: Sequence[int]) -> npt.NDArray[np.uint64]:
    """``checksum << 32 | number`` for all forms of some words of one length, as ``_forms`` has them."""
    text = "".join([listed[number] for number in numbers]).encode()
    letters = np.frombuffer(text, dtype=np.uint8).reshape(len(numbers), -1).astype(np.uint64)
    factors = _BY_PLACE[: letters.shape[1]]
    sums = np.empty((len(numbers), letters.shape[1] + 1), dtype=np.uint64)
    sums[:, 0] = (letters * factors).sum(axis=1)
    sums[:, 1] = (letters[:, 1:] * factors[:-1]).sum(axis=1)
    sums[:, 2:] = (letters[:, :-1] - letters[:, 1:]) * factors[:-1]
    np.cumsum(sums[:, 1:], axis=1, out=sums[:, 1:])
    twice = np.zeros(sums.shape, dtype=np.bool_)
    twice[:, 2:] = letters[:, :-1] == letters[:, 1:]
    entries = sums >> np.uint64(32) << np.uint64(32) | np.array(numbers, dtype=np.uint64)[:, None]
    return entries[~twice]


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
