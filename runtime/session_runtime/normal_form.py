"""Unicode normal forms of text from outside, in time that grows no faster than the text.

The standard library alone sorts a run of combining marks by comparing all of them: forty thousand
take half a minute. Which form is right for what, the caller decides.
"""

import unicodedata
from collections.abc import Iterator
from typing import Final, Literal

_PIECE: Final = 128
_REACH: Final = 32  # no letter of any script has so many marks


def normal(form: Literal["NFC", "NFKC"], text: str) -> str:
    """The normal form of ``text``; where it holds longer runs of marks than any script, nearly so.

    A long text is taken in pieces that end where a character begins. A run of marks that goes on for
    longer is cut: each part of it is put in order, and no mark is lost.
    """
    if text.isascii():
        return text
    if len(text) <= _PIECE:
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = _boundary(text, start + _PIECE)
        yield text[start:end]
        start = end


def _boundary(text: str, at: int) -> int:
    """The first place from ``at`` on, within reach, where a new character begins."""
    reachable = range(at, min(at + _REACH, len(text)))
    return next((place for place in reachable if begins(text[place])), at + _REACH)


def begins(char: str) -> bool:
    """Whether no normal form puts ``char`` together with, or in front of, what stands before it."""
    if char.isascii():
        return True
    first = unicodedata.normalize("NFKD", char)[0]
    joins = (
        "\u1160" <= first <= "\u11ff" or "\ud7b0" <= first <= "\ud7ff"
    )  # vowels and ends of Hangul
    return not joins and unicodedata.category(first)[0] != "M"
