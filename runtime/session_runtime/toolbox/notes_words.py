"""Which words a note is kept under, and how a query ranks notes; ``notes_database`` keeps them.

A run of letters and digits is one word. Text without blanks between its words (Han, kana, Hangul) is kept
under every two neighbouring characters, so that any part of it can be found.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from session_runtime.normal_form import normal

MAX_QUERY_WORDS: Final = 64

_MAX_WORD_CHARS: Final = 64
_MIN_BEGINNING: Final = 3
_WORTH_SHOWING: Final = 0.5
_CJK: Final = (
    "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_RUN: Final = re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+")
_CJK_START: Final = re.compile(f"[{_CJK}]")
_LAST_CHARACTER: Final = "\U0010ffff"  # in no word, and after all that are


@dataclass(frozen=True, slots=True)
class Wanted:
    """A word of a query; words from ``first`` to ``last`` in code point order match it.

    Those that are ``exact`` count in full, the others, which are longer, by half.
    """

    exact: tuple[str, str]
    first: str
    last: str


def words(text: str) -> frozenset[str]:
    """All words that ``text`` is kept under."""
    return frozenset(chain.from_iterable(map(_kept_under, _runs(text))))


def wanted(query: str) -> tuple[Wanted, ...]:
    """The words of a query, each once, at most ``MAX_QUERY_WORDS``; any text is a query."""
    found = dict.fromkeys(chain.from_iterable(map(_looked_up, _runs(query))))
    return tuple(islice(found, MAX_QUERY_WORDS))


def rank(found: Sequence[Mapping[int, float]], total: int) -> list[int]:
    """Order notes, best first: those with more of the words, and rarer ones; then newer ones.

    ``found`` maps, for each word, the ids of notes that have it to how much of it they have (0 to 1);
    ``total`` is the number of all notes. What is less than half as good as the best is left out.
    """
    scores: dict[int, float] = {}
    for holders in found:
        if holders:
            weight = math.log(1 + total / len(holders))
            for note, share in holders.items():
                scores[note] = scores.get(note, 0) + weight * share
    enough = max(scores.values(), default=0) * _WORTH_SHOWING
    good = (note for note, score in scores.items() if score >= enough)
    return sorted(good, key=lambda note: (-scores[note], -note))


def _runs(text: str) -> Iterator[str]:
    folded = normal("NFKC", text).casefold()
    return (match[0] for match in _RUN.finditer(folded))


def _kept_under(run: str) -> Iterator[str]:
    """Of Han text every character with its successor; the last one stands alone."""
    if _CJK_START.match(run):
        yield from (run[at : at + 2] for at in range(len(run)))
    else:
        yield run[:_MAX_WORD_CHARS]


def _looked_up(run: str) -> Iterator[Wanted]:
    """Pairs of Han as they are; a single one, and any other word, as the beginning of words too."""
    if not _CJK_START.match(run):
        yield _word(run[:_MAX_WORD_CHARS])
    elif len(run) == 1:
        yield _beginning(run, run)
    else:
        yield from (_alone(run[at : at + 2]) for at in range(len(run) - 1))


def _word(word: str) -> Wanted:
    singular = word.removesuffix("s") if len(word) > _MIN_BEGINNING else word
    return _alone(word) if len(word) < _MIN_BEGINNING else _beginning(word, singular)


def _alone(word: str) -> Wanted:
    return Wanted((word, word), word, word)


def _beginning(word: str, start: str) -> Wanted:
    return Wanted((word, start), start, start + _LAST_CHARACTER)
