"""Scores tools for terms: rarity, length norms and corrections over the visible tools only (TS-8).

Which words a query has is decided in ``query``, what outranks what in ``view``.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from session_runtime.search.corpus import Corpus
from session_runtime.search.fields import LENGTH_NORMS, NAMING, Field
from session_runtime.search.lru import Lru
from session_runtime.search.terms import STOP_WORDS

TERMS_KEPT = 512
CORRECTED_SHARE = 0.6
SHORTEST_PIECE = 3

Docs = npt.NDArray[np.int64]
Entries = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """The visible tools that one word of a query finds.

    ``term`` is what it is indexed as. ``impacts`` belong to ``docs`` and stay below ``best``;
    ``named`` are the tools whose name holds the word. All positions ascend.
    """

    term: str
    docs: Docs
    impacts: Scores
    named: Docs
    best: float


class Scorer:
    """Term statistics over one set of visible tools; what was asked for last is kept."""

    def __init__(self, corpus: Corpus, visible: npt.NDArray[np.bool_]) -> None:
        self._corpus = corpus
        self._visible = visible
        self._count = int(np.count_nonzero(visible))
        self.size = len(corpus.names)
        self.name_rank = corpus.name_rank
        self._cell_weights = _cell_weights(corpus, visible)
        self._hits: Lru[str, Hits] = Lru(TERMS_KEPT)

    def hits(self, word: str) -> Hits:
        """What a word finds: itself, else its correction; synonyms bring a share."""
        return self._hits.get_or_make(word, self._find)

    def holders(self, word: str) -> npt.NDArray[np.bool_]:
        """Tools, visible or not, with the very word in name, parameters or descriptions (``+word``)."""
        docs, cells, _ = self._postings(self._corpus.lexicon.stem(word))
        held = np.zeros(self.size, dtype=np.bool_)
        held[docs[cells < Field.ENUMS * self.size]] = True
        return held

    def by_field(self, hits: Hits, doc: int) -> dict[str, float]:
        """How much of a word's impact on a tool each field brings; ``similar`` for stand-ins."""
        at = int(np.searchsorted(hits.docs, doc))
        if at == len(hits.docs) or hits.docs[at] != doc:
            return {}
        impact = float(hits.impacts[at])
        docs, cells, counts = self._postings(hits.term)
        own = cells[docs == doc]
        parts = counts[docs == doc] * self._cell_weights[own]
        total = float(parts.sum())
        if not total:
            return {"similar": impact}
        names = [Field(cell // self.size).name.lower() for cell in own.tolist()]
        return dict(zip(names, (impact * parts / total).tolist(), strict=True))

    def _postings(self, term: str) -> tuple[Entries, Entries, npt.NDArray[np.uint8]]:
        postings = self._corpus.postings
        found = postings.slice_of(self._corpus.lexicon.numbers.get(term))
        return postings.docs[found], postings.cells[found], postings.counts[found]

    def _find(self, word: str) -> Hits:
        term = self._corpus.lexicon.stem(word)
        hits = self._own(term)
        if not len(hits.docs):
            hits = self._corrected(word, term)
        others = map(self._own, self._corpus.lexicon.synonyms.get(term, ()))
        return self._with_shares(hits, others, self._corpus.weights.synonyms)

    def _own(self, term: str) -> Hits:
        """Exactly this term: weighted counts by field, saturated, times rarity."""
        docs, cells, counts = self._postings(term)
        if not len(docs):
            return _nothing(term)
        evidence = np.bincount(docs, counts * self._cell_weights[cells], self.size)
        found = np.flatnonzero(evidence > 0)
        if not len(found):
            return _nothing(term)
        weighted = evidence[found]
        best = self._rarity(len(found)) * (self._corpus.weights.saturation + 1)
        impacts = best * (weighted / (weighted + self._corpus.weights.saturation))
        naming = docs[cells < len(NAMING) * self.size]
        return Hits(term, found, impacts, self._visible_once(naming), best)

    def _visible_once(self, docs: Entries) -> Docs:
        first = np.ones(len(docs), dtype=np.bool_)
        np.not_equal(docs[1:], docs[:-1], out=first[1:])
        once = docs[first].astype(np.int64)
        return once[self._visible[once]]

    def _rarity(self, holders: int) -> float:
        share = (self._count - holders + 0.5) / (holders + 0.5)
        return float(math.log1p(share) ** self._corpus.weights.rarity)

    def _corrected(self, word: str, term: str) -> Hits:
        """An unknown word read as a known one a letter away, or as two known ones in one."""
        stem = self._corpus.lexicon.stem
        near = [self._own(stem(known)) for known in self._corpus.spelling.near(word)]
        commonest = max(near, key=lambda hits: len(hits.docs), default=_nothing(term))
        if len(commonest.docs):
            stand_in = replace(_nothing(term), named=commonest.named)
            return self._with_shares(stand_in, [commonest], CORRECTED_SHARE)
        return self._glued(word, term)

    def _glued(self, word: str, term: str) -> Hits:
        lexicon = self._corpus.lexicon
        for end in range(SHORTEST_PIECE, len(word) - SHORTEST_PIECE + 1):
            pieces = word[:end], word[end:]
            if all(map(lexicon.knows, pieces)) and STOP_WORDS.isdisjoint(pieces):
                left, right = (self._own(lexicon.stem(piece)) for piece in pieces)
                if len(left.docs) and len(right.docs):
                    return _both(term, left, right)
        return _nothing(term)

    def _with_shares(self, hits: Hits, others: Iterable[Hits], share: float) -> Hits:
        """Every tool gets what serves it best: the word itself or a share of one of the others."""
        found = [other for other in others if len(other.docs)]
        if not found or not share:
            return hits
        impacts = np.zeros(self.size)
        impacts[hits.docs] = hits.impacts
        for other in found:
            impacts[other.docs] = np.maximum(impacts[other.docs], share * other.impacts)
        docs = np.flatnonzero(impacts > 0)
        best = max(hits.best, *(share * other.best for other in found))
        return Hits(hits.term, docs, impacts[docs], hits.named, best)


def _nothing(term: str) -> Hits:
    none = np.empty(0, np.int64)
    return Hits(term, none, np.empty(0), none, 0.0)


def _both(term: str, left: Hits, right: Hits) -> Hits:
    docs, at_left, at_right = np.intersect1d(
        left.docs, right.docs, assume_unique=True, return_indices=True
    )
    impacts = left.impacts[at_left] + right.impacts[at_right]
    named = np.intersect1d(left.named, right.named, assume_unique=True)
    return Hits(term, docs, impacts, named, left.best + right.best)


def _cell_weights(corpus: Corpus, visible: npt.NDArray[np.bool_]) -> Scores:
    """The weight of one occurrence by field and tool, over the field's relative length; 0 if hidden."""
    weights = np.array(corpus.weights.by_field())[:, None]
    norms = np.array(LENGTH_NORMS)[:, None]
    totals = corpus.lengths[:, visible].sum(axis=1, keepdims=True)
    relative = corpus.lengths * np.count_nonzero(visible) / np.maximum(totals, 1)
    cells: Scores = weights / (1 - norms + norms * relative) * visible
    return cells.ravel()
