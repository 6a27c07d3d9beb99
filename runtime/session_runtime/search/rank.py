"""Scores tools for terms: rarity, length norms and corrections over the visible tools only (TS-8).

Which words a query has is decided in ``query``, what outranks what in ``view``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from session_runtime.search.corpus import Corpus
from session_runtime.search.deeds import DEEDS, NO_DEED
from session_runtime.search.fields import Field
from session_runtime.search.impacts import Docs, Scores, cell_weights, compute_impacts
from session_runtime.search.lru import Lru
from session_runtime.search.terms import SMALL_WORDS, STOP_WORDS, is_cjk, phrase_number

TERMS_KEPT = 512
SHORTEST_PIECE, LONGEST_GLUED = 3, 40
OTHER_DEED = 0.9
"""What is left of a score if, say, the request is to look and the tool removes."""

GROUP_LIFT = 1 / 6
"""How far a tool rises to the best match of its group: who asks for one thing often needs two."""

Entries = npt.NDArray[np.int32]

_NO_DOCS: Docs = np.empty(0, np.int64)
_NO_SCORES: Scores = np.empty(0)


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
        self.size = len(corpus.names)
        self.name_rank = corpus.tables.name_rank
        self._cell_weights = cell_weights(corpus, visible)
        self._impacts = compute_impacts(corpus, visible, self._cell_weights)
        self._hits: Lru[str, Hits] = Lru(TERMS_KEPT)
        self._fits: Lru[int, Scores] = Lru(DEEDS)

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

    def joined(self, left: str, right: str) -> Hits | None:
        """What two neighbouring words find as one: ``key vault`` is a ``keyvault`` too."""
        word = left + right
        if word in STOP_WORDS:
            return None
        term = self._corpus.lexicon.stem(word)
        if term in self._corpus.lexicon.compounds:
            return self.hits(word)
        return self._own(term) if self._held(term) else None

    def long_words(self, run: str) -> Iterator[Hits]:
        """What the synonyms find of the words in text without blanks that are longer than a pair."""
        lexicon = self._corpus.lexicon
        for size in sorted(lexicon.long_sizes):
            for start in range(len(run) - size + 1):
                if (word := run[start : start + size]) in lexicon.compounds:
                    yield self.hits(word)

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
        return np.where(scores > 0, (best[groups] - scores) * GROUP_LIFT, 0)

    def _postings(self, term: str) -> tuple[Entries, Entries, npt.NDArray[np.uint8]]:
        postings = self._corpus.postings
        found = postings.slice_of(self._corpus.lexicon.numbers.get(term))
        return postings.docs[found], postings.cells[found], postings.counts[found]

    def _find(self, word: str) -> Hits:
        term = self._corpus.lexicon.stem(word)
        hits = self._alone(term)
        if not len(hits.docs):
            hits = self._corrected(word, term)
        if term not in self._corpus.lexicon.synonyms:
            return hits
        synonyms, translations = self._others(term)
        return self._with_others(hits, synonyms, translations)

    def _others(self, term: str) -> tuple[list[Hits], list[Hits]]:
        """What the synonyms of a term find: those in its own script, and its translations."""
        synonyms = self._corpus.lexicon.synonyms[term]
        scripts: tuple[list[Hits], list[Hits]] = [], []
        for hits in map(self._alone, synonyms):
            if len(hits.docs):
                scripts[is_cjk(hits.term) != is_cjk(term)].append(hits)
        return scripts

    def _alone(self, term: str) -> Hits:
        """What a term finds without synonyms; a compound finds the tools that hold all of its terms."""
        hits = self._own(term)
        pieces = self._corpus.lexicon.compounds.get(term, ())
        if len(hits.docs) or not pieces:
            return hits
        found = [self._own(piece) for piece in pieces]
        both = reduce(partial(_both, term), found)
        return replace(both, impacts=both.impacts / len(found), best=both.best / len(found))

    def _held(self, term: str) -> bool:
        """Whether a visible tool holds a term."""
        return self._impacts.held(self._corpus.lexicon.numbers.get(term))

    def _own(self, term: str) -> Hits:
        """Exactly this term."""
        number = self._corpus.lexicon.numbers.get(term)
        if number is None or not self._impacts.held(number):
            return _nothing(term)
        found = self._impacts.slice_of(number)
        docs = self._impacts.docs[found]
        named = docs[self._impacts.naming[found]]
        return Hits(
            term, docs, self._impacts.values[found], named, float(self._impacts.best[number])
        )

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
            return replace(commonest, term=term)
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
            pieces = word[:end], word[end:]
            if _may_be_glued(*pieces) and all(map(self._written, pieces)):
                left, right = (self._own(lexicon.stem(piece)) for piece in pieces)
                both = _both(term, left, right)
                if len(both.named if pieces[1] in SMALL_WORDS else both.docs):
                    return both
        return _nothing(term)

    def _with_others(
        self, hits: Hits, synonyms: Sequence[Hits], translations: Sequence[Hits]
    ) -> Hits:
        """A tool gets what serves it best, the word or a share of a synonym, and of a translation too.

        Many a tool has a Chinese description and an English name, so both may speak for it.
        """
        if not synonyms and not translations:
            return hits
        weights = self._corpus.weights
        shares = [(hits, 1.0), *((other, weights.synonyms) for other in synonyms)]
        impacts, best = self._best_of(shares)
        if translations:
            more, most = self._best_of([(other, weights.translations) for other in translations])
            impacts += more
            best += most
        docs = np.flatnonzero(impacts)
        return Hits(hits.term, docs, impacts[docs], hits.named, best)

    def _best_of(self, shares: Sequence[tuple[Hits, float]]) -> tuple[Scores, float]:
        """The best of some shares for each tool, and what none of them reaches."""
        impacts = np.zeros(self.size)
        for hits, share in shares:
            impacts[hits.docs] = np.maximum(impacts[hits.docs], share * hits.impacts)
        return impacts, max(share * hits.best for hits, share in shares)


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


def _both(term: str, left: Hits, right: Hits) -> Hits:
    docs, at_left, at_right = np.intersect1d(
        left.docs, right.docs, assume_unique=True, return_indices=True
    )
    impacts = left.impacts[at_left] + right.impacts[at_right]
    named = np.intersect1d(left.named, right.named, assume_unique=True)
    return Hits(term, docs, impacts, named, left.best + right.best)
