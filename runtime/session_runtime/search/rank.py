"""Scores tools for terms: rarity, length norms and corrections over the visible tools only (TS-8).

Which words a query has is decided in ``query``, what outranks what in ``keywords``.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from session_runtime.lru import Lru
from session_runtime.search.corpus import Corpus
from session_runtime.search.deeds import DEEDS, NO_DEED
from session_runtime.search.fields import Field
from session_runtime.search.impacts import Docs, Scores, cell_weights, compute_impacts
from session_runtime.search.spoken import parts_of_words
from session_runtime.search.terms import SMALL_WORDS, STOP_WORDS, phrase_number

KEPT_BYTES, KEPT_BYTES_PER_TOOL = 500_000, 200
"""How much is kept of what words find; a common word with synonyms finds 16 bytes for each tool."""

BYTES_PER_PAIR, BYTES_PER_TERM = 24, 24
BYTES_PER_TOOL = 8 * (len(Field) + DEEDS + 1)

HITS_BYTES = 800
SHORTEST_PIECE, LONGEST_GLUED = 3, 40
OTHER_DEED = 0.9
"""What is left of a score if, say, the request is to look and the tool removes."""

GROUP_LIFT = 1 / 6
"""How far a tool rises to the best match of its group: who asks for one thing often needs two."""

_MEANT_BY_PLUS = sorted(set(Field) - {Field.HINTS, Field.ENUMS})
_NO_DOCS: Docs = np.empty(0, np.int64)
_NO_SCORES: Scores = np.empty(0)


class Hits(NamedTuple):
    """The visible tools that one word of a query finds.

    ``term`` is what it is indexed as. ``impacts`` belong to ``docs`` and stay below ``best``;
    ``named`` are the tools whose name holds the word. All positions ascend.
    """

    term: str
    docs: Docs
    impacts: Scores
    named: Docs
    best: float

    @property
    def own_bytes(self) -> int:
        """The memory of the figures that are shared with no other word."""
        return 0 if self.impacts.base is not None else self.docs.nbytes + self.impacts.nbytes


class StandIns(NamedTuple):
    """What each of some terms brings to which tools, and more than it can bring to any."""

    docs: list[Docs]
    impacts: list[Scores]
    bests: list[float]

    def add(self, docs: Docs, impacts: Scores, best: float) -> None:
        """Put in what one more term brings."""
        self.docs.append(docs)
        self.impacts.append(impacts)
        self.bests.append(best)

    def raising(self, raised: Scores, share: float) -> float:
        """Raise figures to the best share of what a term brings; returns what no such share reaches."""
        several = len(self.docs) > 1
        docs = np.concatenate(self.docs) if several else self.docs[0]
        values = (np.concatenate(self.impacts) if several else self.impacts[0]) * share
        np.maximum.at(raised, docs, values)
        return share * max(self.bests)


class Scorer:
    """Term statistics over one set of visible tools; what was asked for last is kept."""

    def __init__(self, corpus: Corpus, visible: npt.NDArray[np.bool_]) -> None:
        self._corpus = corpus
        self._numbers = corpus.lexicon.numbers
        self._visible = visible
        self.size = len(corpus.names)
        self.name_rank = corpus.tables.name_rank
        self._cell_weights = cell_weights(corpus, visible)
        self._impacts = compute_impacts(corpus, visible, self._cell_weights)
        self.kept_bytes = kept_bytes(int(np.count_nonzero(visible)))
        self._hits: Lru[str, Hits] = Lru(self.kept_bytes, _bytes_of)
        self._fits: Lru[int, Scores] = Lru(DEEDS)

    def hits(self, word: str) -> Hits:
        """What a word finds: itself, else its correction; synonyms bring a share."""
        return self._hits.get_or_make(word, self.find)

    def holders(self, word: str) -> npt.NDArray[np.bool_]:
        """Tools, visible or not, with the very word in name, parameters or descriptions (``+word``)."""
        docs, cells, _ = self._postings(self._corpus.lexicon.stem(word))
        meant = np.isin(cells // max(self.size, 1), _MEANT_BY_PLUS)
        held = np.zeros(self.size, dtype=np.bool_)
        held[docs[meant]] = True
        return held

    def by_field(self, hits: Hits, doc: int) -> dict[str, float]:
        """How much of a word's impact on a tool each field brings; ``similar`` for stand-ins."""
        impact = _impact(hits, doc)
        if not impact:
            return {}
        docs, cells, counts = self._postings(hits.term)
        own = cells[docs == doc]
        parts = counts[docs == doc] * self._cell_weights[own]
        total = float(parts.sum())
        if not total:
            return {"similar": impact}
        itself = min(_impact(self._own(hits.term), doc), impact)
        names = [Field(cell // self.size).name.lower() for cell in own.tolist()]
        fields = dict(zip(names, (itself * parts / total).tolist(), strict=True))
        return fields if itself == impact else {**fields, "similar": impact - itself}

    def meaning_the_same(self, hits: Hits) -> Docs:
        """The tools to which a synonym or a translation of a word brings more than the word itself."""
        if hits.term not in self._corpus.lexicon.others:
            return _NO_DOCS
        own = np.zeros(self.size)
        itself = self._own(hits.term)
        own[itself.docs] = itself.impacts
        more: Docs = hits.docs[hits.impacts > own[hits.docs]]
        return more

    def joined(self, left: str, right: str) -> Hits | None:
        """What two neighbouring words find as one: ``key vault`` is a ``keyvault`` too."""
        word = left + right
        term = self._corpus.lexicon.stem(word)
        if term in self._corpus.lexicon.compounds:
            return None if word in STOP_WORDS else self.hits(word)
        number = self._number(term)
        if number is None or word in STOP_WORDS:
            return None
        return self._in_one(self._hits_of(term, number))

    def _in_one(self, hits: Hits) -> Hits | None:
        """The tools that write a word as one; those whose names hold it as two have both words anyway."""
        postings = self._corpus.postings
        found = postings.slice_of(self._corpus.lexicon.numbers.get(hits.term))
        if not (parted := postings.parted[found]).any():
            return hits
        in_one = np.zeros(self.size, dtype=np.bool_)
        in_one[postings.docs[found][~parted]] = True
        kept = in_one[hits.docs]
        docs = hits.docs[kept]
        return hits._replace(docs=docs, impacts=hits.impacts[kept]) if len(docs) else None

    def long_words(self, run: str) -> Iterator[Hits]:
        """What the synonyms find of the words in text without blanks that are longer than a pair."""
        lexicon = self._corpus.lexicon
        for size in sorted(lexicon.long_sizes):
            for start in range(len(run) - size + 1):
                if (word := run[start : start + size]) in lexicon.compounds:
                    yield self.hits(word)

    def parts_of_words(self, pieces: Sequence[str]) -> Collection[str]:
        """The characters of pieces of Han text that have synonyms, but are parts of other words here."""
        lexicon = self._corpus.lexicon
        return parts_of_words(pieces, lexicon.others, max(lexicon.long_sizes, default=2))

    def alone(self, word: str) -> Hits:
        """What a word finds without its synonyms and translations."""
        return self._alone(self._corpus.lexicon.stem(word))

    def side_by_side(self, terms: Sequence[str]) -> Iterator[tuple[int, Docs]]:
        """Which of some terms, with its follower, stand so in descriptions, and of which tools."""
        lexicon = self._corpus.lexicon
        numbers = map(lexicon.numbers.get, terms)
        hashes = [0 if number is None else lexicon.hashes[number] for number in numbers]
        places = [at for at, (left, right) in enumerate(pairwise(hashes)) if left and right]
        phrases = [phrase_number(hashes[at], hashes[at + 1]) for at in places]
        for at, found in zip(places, self._corpus.phrases.of(phrases), strict=True):
            if len(found) and len(docs := found[self._visible[found]]):
                yield at, docs.astype(np.int64)

    def fit(self, deed: int) -> Scores:
        """1 for each tool, less for those whose name says that they do something else."""
        return self._fits.get_or_make(deed, self._fit)

    def _fit(self, deed: int) -> Scores:
        deeds = self._corpus.deeds
        fits: Scores = np.where((deeds == NO_DEED) | (deeds == deed), 1.0, OTHER_DEED)
        return fits

    def lift(self, scores: Scores) -> Scores:
        """What the best of its group adds to each tool that matches at all; nothing to the best."""
        groups = self._corpus.groups
        best = np.zeros(len(groups))
        np.maximum.at(best, groups, scores)
        lifted: Scores = best[groups]
        lifted -= scores
        lifted *= GROUP_LIFT
        lifted *= scores > 0
        return lifted

    def _postings(
        self, term: str
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        postings = self._corpus.postings
        found = postings.slice_of(self._corpus.lexicon.numbers.get(term))
        return postings.docs[found], postings.cells[found], postings.counts[found]

    def find(self, word: str) -> Hits:
        """``hits`` for who keeps them himself."""
        lexicon = self._corpus.lexicon
        term = lexicon.stem(word)
        hits = self._alone(term) if term in lexicon.compounds else self._own(term)
        if not len(hits.docs):
            hits = self._corrected(word, term)
        others = lexicon.others.get(term)
        if others is None:
            return hits
        return self._with_others(hits, self._held(others.synonyms), self._held(others.translations))

    def _held(self, terms: Sequence[str]) -> StandIns | None:
        """What those of some terms bring that a visible tool holds, each alone; None if there are none."""
        numbers, compounds, impacts = self._numbers, self._corpus.lexicon.compounds, self._impacts
        offsets, bests, known = impacts.offsets, impacts.best, len(impacts.best)
        found = StandIns([], [], [])
        for term in terms:
            if term in compounds:
                hits = self._alone(term)
                if len(hits.docs):
                    found.add(hits.docs, hits.impacts, hits.best)
            elif (number := numbers.get(term, known)) < known and (best := bests[number]) > 0:
                at = slice(offsets[number], offsets[number + 1])
                found.add(impacts.docs[at], impacts.values[at], best)
        return found if found.bests else None

    def _alone(self, term: str) -> Hits:
        """What a term finds without synonyms; a compound finds the tools that hold all of its terms, too."""
        hits = self._own(term)
        pieces = self._corpus.lexicon.compounds.get(term)
        if pieces is None or None in (held := list(map(self._number, pieces))):
            return hits
        found = [self._hits_of(term, number) for number in held if number is not None]
        both = reduce(partial(_both, term), found)
        apart = both._replace(impacts=both.impacts / len(found), best=both.best / len(found))
        return _first_of(apart, hits)

    def _number(self, term: str) -> int | None:
        """The number of a term that a visible tool holds."""
        number = self._numbers.get(term)
        return number if number is not None and self._impacts.held(number) else None

    def _own(self, term: str) -> Hits:
        """Exactly this term."""
        number = self._numbers.get(term)
        if number is None or not self._impacts.held(number):
            return Hits(term, _NO_DOCS, _NO_SCORES, _NO_DOCS, 0.0)
        return self._hits_of(term, number)

    def _hits_of(self, term: str, number: int) -> Hits:
        impacts = self._impacts
        found = slice(impacts.offsets[number], impacts.offsets[number + 1])
        named = impacts.named[impacts.named_offsets[number] : impacts.named_offsets[number + 1]]
        return Hits(term, impacts.docs[found], impacts.values[found], named, impacts.best[number])

    def _corrected(self, word: str, term: str) -> Hits:
        """An unknown word read as a known one a letter away, or as two known ones in one."""
        stem = self._corpus.lexicon.stem
        near = [
            self._own(stem(known))
            for known in self._corpus.spelling.near(word)
            if self._written(known)
        ]
        commonest = max(near, key=lambda hits: len(hits.docs), default=_nothing(term))
        if len(commonest.docs):
            return commonest._replace(term=term)
        return self._glued(word, term)

    def _written(self, word: str) -> bool:
        """Whether a visible tool holds the word just as written, not another of the same stem."""
        number = self._corpus.lexicon.words.get(word)
        return number is not None and bool(self._visible[self._corpus.holders.of(number)].any())

    def _glued(self, word: str, term: str) -> Hits:
        if len(word) > LONGEST_GLUED:
            return _nothing(term)
        lexicon = self._corpus.lexicon
        for end in range(SHORTEST_PIECE, len(word) - 1):
            if word[:end] not in lexicon.words:
                continue
            pieces = word[:end], word[end:]
            if _may_be_glued(*pieces) and all(map(self._written, pieces)):
                left, right = (self._own(lexicon.stem(piece)) for piece in pieces)
                both = _both(term, left, right)
                if len(both.named if pieces[1] in SMALL_WORDS else both.docs):
                    return both
        return _nothing(term)

    def _with_others(
        self, hits: Hits, synonyms: StandIns | None, translations: StandIns | None
    ) -> Hits:
        """A tool gets what serves it best, the word or a share of a synonym, and of a translation too.

        Many a tool has a Chinese description and an English name, so both may speak for it.
        """
        if synonyms is None and translations is None:
            return hits
        weights = self._corpus.weights
        impacts, best = np.zeros(self.size), hits.best
        impacts[hits.docs] = hits.impacts
        if synonyms is not None:
            best = max(best, synonyms.raising(impacts, weights.synonym_share))
        if translations is not None:
            more = np.zeros(self.size)
            best += translations.raising(more, weights.translation_share)
            impacts += more
        docs = (impacts > 0).nonzero()[0]  # twice as fast as for the figures themselves
        return Hits(hits.term, docs, impacts[docs], hits.named, best)


def kept_bytes(tools: int) -> int:
    """How much memory a view of so many tools keeps of what words find."""
    return KEPT_BYTES + KEPT_BYTES_PER_TOOL * tools


def most_bytes(corpus: Corpus, visible: npt.NDArray[np.bool_]) -> int:
    """About how much memory ranking some tools takes once all its caches are full."""
    pairs, tools = int(corpus.pairs_by_tool[visible].sum()), int(np.count_nonzero(visible))
    statistics = BYTES_PER_PAIR * pairs + BYTES_PER_TERM * len(corpus.postings.offsets)
    return statistics + BYTES_PER_TOOL * len(visible) + 2 * kept_bytes(tools)


def _bytes_of(word: str, hits: Hits) -> int:
    return bytes_of(word, (hits,))


def bytes_of(word: str, found: Iterable[Hits]) -> int:
    """About how much memory it takes to keep what a word finds."""
    return 4 * len(word) + sum([HITS_BYTES + hits.own_bytes for hits in found])


def _impact(hits: Hits, doc: int) -> float:
    """What a word brings to one tool; 0 if it does not find it."""
    at = int(np.searchsorted(hits.docs, doc))
    found = at < len(hits.docs) and hits.docs[at] == doc
    return float(hits.impacts[at]) if found else 0.0


def _may_be_glued(left: str, right: str) -> bool:
    """Whether two words may be written as one: ``log`` and ``in``, but not ``my`` and ``list``."""
    return left not in STOP_WORDS and (
        right in SMALL_WORDS or (right not in STOP_WORDS and len(right) >= SHORTEST_PIECE)
    )


def _nothing(term: str) -> Hits:
    return Hits(term, _NO_DOCS, _NO_SCORES, _NO_DOCS, 0.0)


def _first_of(one: Hits, other: Hits) -> Hits:
    """The tools that either finds; what ``one`` says of a tool goes before what ``other`` says."""
    if not len(one.docs) or not len(other.docs):
        return one if len(one.docs) else other
    more = ~np.isin(other.docs, one.docs)
    docs = np.concatenate((one.docs, other.docs[more]))
    order = np.argsort(docs)
    impacts = np.concatenate((one.impacts, other.impacts[more]))[order]
    named = np.union1d(one.named, other.named)
    return Hits(one.term, docs[order], impacts, named, max(one.best, other.best))


def _both(term: str, left: Hits, right: Hits) -> Hits:
    docs, at_left, at_right = np.intersect1d(
        left.docs, right.docs, assume_unique=True, return_indices=True
    )
    impacts = left.impacts[at_left] + right.impacts[at_right]
    named = np.intersect1d(left.named, right.named, assume_unique=True)
    return Hits(term, docs, impacts, named, left.best + right.best)
