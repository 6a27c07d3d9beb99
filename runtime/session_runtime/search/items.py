"""Finds names that are glued to other text: behind the mark of a list's item, or in text without blanks."""

import re
from collections.abc import Callable, Iterator
from itertools import product

from session_runtime.search.terms import CJK

CIRCLED = "\u2460-\u24b5\u24ea-\u24ff\u2776-\u2793\u3220-\u3229\u3280-\u3289"
"""Numbers and letters in circles or brackets, as a range of a pattern."""

MAX_GLUED, MAX_TRIED = 5, 1_000
"""So many runs of text without blanks are looked at, and so many parts of each."""

BEFORE, BEHIND = 16, 40
"""How many characters of a name without blanks may stand before its first separator, and behind it."""

_NUMBER = "(?:[0-9]{1,3}|[一二三四五六七八九十]{1,3})"
_MARKS = re.compile(
    rf"[{CIRCLED}]|[(（]{_NUMBER}[)）]|(?:^|(?<=[\s,，、;；]))"
    rf"(?:{_NUMBER}[)）、]|{_NUMBER}[.．:：]\s|[-*•·▪◦‣–—]\s)"
)
_MARK_BEFORE = re.compile(rf"{_NUMBER}[.．:：](?=[^\W\d_])")
_MARK_BEGINS = "0123456789一二三四五六七八九十"
_SEPARATOR = re.compile("[._/-]")
_CIRCLED = re.compile(f"[{CIRCLED}]")
_WITH_CIRCLED = re.compile(rf"[^\s{CIRCLED},，、;；]++[{CIRCLED}][^\s,，、;；]*")
_SEPARATORS = "[._/-]+"
_GLUED_AT = re.compile(rf"[{CJK}]{_SEPARATORS}[^\W_]|[^\W_]{_SEPARATORS}[{CJK}]")
_GLUED = re.compile(rf"[^\W_]+(?:{_SEPARATORS}[^\W_]+)+")
_PIECE = re.compile(rf"{_SEPARATORS}|[{CJK}]|[^\W_{CJK}]+")


def without_marks(text: str) -> str:
    """A list of names with a line's end for the mark of each item: ``1. a.b``, ``②a.b``, ``- a.b``."""
    return _MARKS.sub("\n", text)


def without_circled(text: str) -> str:
    """Text with a blank for each number in a circle, which would else become a part of the next word."""
    return _CIRCLED.sub(" ", text)


def circled_in(text: str) -> list[str]:
    """What stands between blanks and holds a number in a circle, which may be a part of a name."""
    return _WITH_CIRCLED.findall(text)


def unmarked(name: str) -> str:
    """What stands behind the mark of an item, if it may be a name: ``1.web.search``."""
    found = _MARK_BEFORE.match(name) if name[:1] in _MARK_BEGINS else None
    found = found or _MARKS.match(name)
    return name if found is None else name[found.end() :].lstrip()


def glued_in(sentence: str) -> list[str]:
    """The runs of a normalised sentence that have a separator of names beside text without blanks."""
    if sentence.isascii() or not _SEPARATOR.search(sentence) or not _GLUED_AT.search(sentence):
        return []
    return [run for run in _GLUED.findall(sentence) if _GLUED_AT.search(run)][:MAX_GLUED]


def names_within(run: str, is_name: Callable[[str], bool]) -> Iterator[str]:
    """The names that stand in a run of ``glued_in``, each the longest that begins there.

    A name begins and ends at any character of text without blanks, and holds a separator.
    """
    pieces = _PIECE.findall(run)
    borders = [at for at, piece in enumerate(pieces) if piece[0] in "._/-"]
    tried = 0
    end = 0
    for first, border in enumerate(borders):
        after = borders[first - 1] + 1 if first else 0
        starts = range(max(end, after, border - BEFORE), border)
        ends = range(min(len(pieces), border + BEHIND), border + 1, -1)
        for start, stop in product(starts, ends):
            tried += 1
            if tried > MAX_TRIED:
                return
            if is_name(name := "".join(pieces[start:stop])):
                yield name
                end = stop
                break
