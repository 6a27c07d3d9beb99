"""Ranks the visible tools for keywords (TS-8): layers of certainty, and within a layer the score.

How much one word brings to one tool is decided in ``rank``, what all bring together in ``evidence``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from session_runtime.lru import Lru
from session_runtime.search.corpus import Positions
from session_runtime.search.evidence import JOINED, Evidence, Spoken, Term, collect, weighted
from session_runtime.search.impacts import Docs, Scores
from session_runtime.search.query import Keywords, Word
from session_runtime.search.rank import Hits, Scorer, bytes_of
from session_runtime.search.spoken import telling_pieces, telling_terms
from session_runtime.search.terms import (
    LIGHT_WORDS,
    SMALL_WORDS,
    STOP_WORDS,
    analyse,
    is_cjk,
    is_plain,
    runs,
)

FULL_LAYER, EXACT_LAYER, NAME_LAYER = 3, 2, 1
WEAKEST = 0.1
"""A tool that meets less than this share of what the best one meets is not a match."""

MINOR = 0.4
"""How much a word in quotes counts, or one that is mostly politeness."""

ENOUGH = 2
"""So many single characters of text without blanks make a match; they are in most descriptions."""

KEYWORD_LIST = range(4, 11)
"""So many known words and no filler are a list of keywords, of which a tool must meet half."""


_NO_DOCS: Docs = np.empty(0, np.int64)
_NO_SHARES: Scores = np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """A score for every position, 0 where nothing matches and never less.

    The whole part of a score is the layer (3: the name stands in the query in full, 2: in another form,
    1: the name holds every word), the fraction is the share of what a tool could score at best.
    """

    scores: Scores
    name_rank: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        """How many tools match."""
        return int(np.count_nonzero(self.scores))

    def top(self, limit: int) -> list[int]:
        """The positions of the best ``limit`` matches: by score, equal ones by name."""
        found = (self.scores > 0).nonzero()[0]
        scores = self.scores[found]
        if len(found) > limit > 0:
            kept = (scores >= np.partition(scores, -limit)[-limit]).nonzero()[0]
            found, scores = found[kept], scores[kept]
        order = np.lexsort((self.name_rank[found], -scores))
        positions: list[int] = found[order[: max(limit, 0)]].tolist()
        return positions


class Sought(NamedTuple):
    """What one word of a query finds among the visible tools.

    ``terms`` are all evidence for it, and ``bridges`` names that write two parts of it as one; ``docs``
    are the tools found, ``named`` those whose name holds the whole word; ``unbroken`` is text without
    blanks between its words.
    """

    terms: tuple[Term, ...]
    docs: Docs
    named: Docs
    unbroken: bool
    bridges: tuple[Term, ...] = ()

    def evidence(self, literal: bool) -> tuple[Term, ...]:
        """What speaks for tools; of a ``literal``, a word in quotes, all counts less and no bridge at all."""
        if literal:
            return tuple(weighted(term.hits, MINOR) for term in self.terms)
        return self.terms + self.bridges if self.bridges else self.terms


class KeywordRanker:
    """Ranks one set of visible tools; the words that were sought last are kept with what they find."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._sought: Lru[str, Sought] = Lru(scorer.kept_bytes, _bytes_of)

    def rank(self, keywords: Keywords, named: Positions, formed: Positions) -> Ranking:
        """Rank all visible tools; the query names some in full and others in another form."""
        exact = formed + named
        words = keywords.words
        telling = telling_words(words)
        sought = [self._seek(word) for word in telling]
        scores = self._collect(keywords, telling, sought).scores()
        shares = scores[list(exact)] if exact else _NO_SHARES
        scores *= scores >= WEAKEST * scores.max(initial=0)
        scores[self._with_every_word(words, sought)] += NAME_LAYER
        if len(telling) == len(words) and _misses_the_point(sought):
            scores[:] = 0
        _drop_mere_mentions(telling, sought, scores)
        self._drop_single_characters(sought, scores)
        if exact:
            scores[list(exact)] = shares + ([EXACT_LAYER] * len(formed) + [FULL_LAYER] * len(named))
        for word in words:
            if word.required:
                scores[~self._holders(word)] = 0
        return Ranking(scores, self._scorer.name_rank)

    def evidence(self, keywords: Keywords, position: int) -> list[dict[str, object]]:
        """What each word brought to one tool, by field, as shares of the best possible score."""
        telling = telling_words(keywords.words)
        sought = [self._seek(word) for word in telling]
        return self._collect(keywords, telling, sought).parts(position)

    def _collect(
        self, keywords: Keywords, telling: Sequence[Word], sought: Sequence[Sought]
    ) -> Evidence:
        spoken = {
            word.text: Spoken(word.text, found.evidence(word.literal))
            for word, found in zip(telling, sought, strict=True)
        }
        if len(telling) < len(keywords.words):
            spoken = self._small_words(keywords.words) | spoken
        sentences = [
            [spoken[word.text] for word in sentence if word.text in spoken]
            for sentence in keywords.sentences
        ]
        return collect(self._scorer, sentences, [word.text for word in keywords.words])

    def _small_words(self, words: Sequence[Word]) -> dict[str, Spoken]:
        return {
            word.text: Spoken(word.text, (), self._scorer.hits(small))
            for word in words
            if (small := word.text.casefold()) in SMALL_WORDS
        }

    def _seek(self, word: Word) -> Sought:
        return self._sought.get_or_make(word.text, self._find)

    def _find(self, text: str) -> Sought:
        if not is_plain(text):
            return self._find_parts(text)
        word = text.lower()
        hits = self._scorer.find(word)
        term = weighted(hits, MINOR if word in LIGHT_WORDS else 1.0)
        return Sought((term,), hits.docs, hits.named, unbroken=False)

    def _find_parts(self, text: str) -> Sought:
        found: list[Hits] = []
        named: list[Docs] = []
        pieces = runs(text)
        for run in pieces:
            parts, joined = self._find_run(run)
            held = _in_all([part.named for part in parts])
            named.append(held if joined is None else _in_either(held, joined.named))
            found += parts if joined is None else (*parts, joined)
            found += self._scorer.long_words(run) if is_cjk(run) else ()
        bridges = self._find_bridges(pieces)
        weight = MINOR if text.casefold() in LIGHT_WORDS else 1.0
        return Sought(
            tuple(weighted(hits, weight) for hits in found),
            _in_any([hits.docs for hits in chain(found, filter(None, bridges))]),
            _in_all(_bridged(named, bridges)),
            any(map(is_cjk, pieces)),
            tuple(weighted(hits, JOINED) for hits in bridges if hits is not None),
        )

    def _find_run(self, run: str) -> tuple[list[Hits], Hits | None]:
        if is_cjk(run):
            return self._find_unbroken(run), None
        cut = analyse(run)
        joined = self._scorer.hits(cut.joined) if cut.joined is not None else None
        return [self._scorer.hits(part) for part in cut.parts], joined

    def _find_unbroken(self, run: str) -> list[Hits]:
        """What text without blanks finds; a character within another word stands for nothing else."""
        pieces = telling_pieces(run)
        inside = self._scorer.parts_of_words(pieces)
        return [
            self._scorer.alone(part) if part in inside else self._scorer.hits(part)
            for part in telling_terms(run, pieces)
        ]

    def _find_bridges(self, pieces: Sequence[str]) -> list[Hits | None]:
        """The names that write two neighbouring pieces of a word as one: ``wi-fi`` is a ``wifi`` too."""
        return [
            self._find_bridge(left.lower(), right.lower())
            if is_plain(left) and is_plain(right)
            else None
            for left, right in pairwise(pieces)
        ]

    def _find_bridge(self, left: str, right: str) -> Hits | None:
        hits = self._scorer.joined(left, right)
        return hits if hits is not None and len(hits.named) else None

    def _with_every_word(self, words: Sequence[Word], sought: Sequence[Sought]) -> Docs:
        """The tools whose name holds all telling words, and of these those with the small ones too."""
        held = _in_all([found.named for found in sought])
        for word in words if len(held) > 1 else ():
            hits = self._small(word.text)
            both = held if hits is None else _in_all((held, hits.named))
            held = both if len(both) else held
        return held

    def _small(self, text: str) -> Hits | None:
        """What a small word finds in names."""
        word = text.casefold()
        if word not in SMALL_WORDS:
            return None
        return self._scorer.hits(word)

    def _drop_single_characters(self, sought: Sequence[Sought], scores: Scores) -> None:
        """A tool with but one telling character of text without blanks is no hit.

        It is one if it has the character in its name, or a word that means the same.
        """
        terms = [term.hits for found in sought for term in found.terms]
        if len(terms) < 3 or not all(found.unbroken for found in sought):
            return
        enough = np.zeros(len(scores), dtype=np.int64)
        for hits in terms:
            if hits.term in STOP_WORDS:
                continue
            enough[hits.docs] += 1 if len(hits.term) == 1 else ENOUGH
            enough[hits.named] = ENOUGH
            enough[self._scorer.meaning_the_same(hits)] += ENOUGH
        scores[enough < ENOUGH] = 0

    def _holders(self, word: Word) -> npt.NDArray[np.bool_]:
        """Tools that hold every part of a required word, or its joined form."""
        holders = self._scorer.holders
        held: list[npt.NDArray[np.bool_]] = []
        pieces = runs(word.text)
        for run in pieces:
            cut = analyse(run)
            whole = np.logical_and.reduce([holders(part) for part in cut.parts])
            held.append(whole if cut.joined is None else whole | holders(cut.joined))
        for at, (left, right) in enumerate(pairwise(pieces)):
            bridge = holders(left.casefold() + right.casefold())
            held[at] |= bridge
            held[at + 1] |= bridge
        held_by_all: npt.NDArray[np.bool_] = np.logical_and.reduce(held)
        return held_by_all


def _bytes_of(text: str, sought: Sought) -> int:
    """About how much memory it takes to keep what a word finds."""
    if len(sought.terms) == 1 and not sought.bridges:
        return bytes_of(text, (sought.terms[0].hits,))
    terms = chain(sought.terms, sought.bridges)
    return sought.docs.nbytes + sought.named.nbytes + bytes_of(text, [term.hits for term in terms])


def telling_words(words: Sequence[Word]) -> Sequence[Word]:
    """The words that say something about a tool, or else all."""
    telling = [word for word in words if word.required or word.text.casefold() not in STOP_WORDS]
    return telling or words


def _misses_the_point(sought: Sequence[Sought]) -> bool:
    """Whether a list of keywords has less than half of its known words in common with any tool."""
    known = [found.docs for found in sought if len(found.docs)]
    if len(known) not in KEYWORD_LIST or any(found.unbroken for found in sought):
        return False
    return int(np.bincount(np.concatenate(known)).max()) * 2 < len(known)


def _drop_mere_mentions(words: Sequence[Word], sought: Sequence[Sought], scores: Scores) -> None:
    """Where a compound word is part of a name, tools that only mention it elsewhere are no hits."""
    named = [
        word.compound and len(found.named) > 0 for word, found in zip(words, sought, strict=True)
    ]
    if not any(named):
        return
    meant = np.zeros(len(scores), dtype=np.bool_)
    for by_name, found in zip(named, sought, strict=True):
        meant[found.named if by_name else found.docs] = True
    scores[~meant] = 0


def _bridged(named: Sequence[Docs], bridges: Sequence[Hits | None]) -> list[Docs]:
    """The tools whose name holds each piece of a word, alone or as one with a neighbour."""
    held = list(named)
    for at, hits in enumerate(bridges):
        if hits is not None:
            held[at] = _in_either(held[at], hits.named)
            held[at + 1] = _in_either(held[at + 1], hits.named)
    return held


def _in_either(left: Docs, right: Docs) -> Docs:
    """What is in one of two ascending arrays, or in both."""
    return np.union1d(left, right) if len(left) and len(right) else left if len(left) else right


def _in_any(sets: Sequence[Docs]) -> Docs:
    """What is in any of some ascending arrays."""
    if len(sets) == 1:
        return sets[0]
    held_by_any: Docs = np.bincount(np.concatenate(sets)).nonzero()[0]
    return held_by_any


def _in_all(sets: Sequence[Docs]) -> Docs:
    """What is in every one of some ascending arrays."""
    fewest = min(sets, key=len, default=_NO_DOCS)
    if len(sets) < 2 or not len(fewest):
        return fewest
    held_by_all: Docs = (np.bincount(np.concatenate(sets)) == len(sets)).nonzero()[0]
    return held_by_all
