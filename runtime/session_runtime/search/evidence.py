"""Adds up what the words of a query say for each tool: alone, in their sentence, side by side (TS-8).

What one word finds is decided in ``rank``, what outranks what in ``keywords``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from session_runtime.search.impacts import Docs, Scores
from session_runtime.search.rank import Hits, Scorer

PHRASE = 0.1
"""What two words side by side add, as a share of what the weaker of them could bring at best."""

JOINED = 0.35
"""How much two neighbouring words count as one word."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """What a word finds, and how much it counts in this query: 1, or less."""

    hits: Hits
    weight: float

    @property
    def best(self) -> float:
        """More than it can bring to any tool."""
        return self.hits.best * self.weight


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """A word of the query as written, and the terms it is searched by, in their order."""

    text: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Phrase:
    """Two terms side by side, the tools that have them so, and what that brings."""

    text: str
    docs: Docs
    bonus: float


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """All that speaks for any tool; scores are shares of ``best``, which no tool reaches.

    One half of a score is the sum over all ``terms``, the other what the tool's best sentence
    brings, which counts in full only if the tool has every word of it.
    """

    scorer: Scorer
    terms: tuple[Term, ...]
    sentences: tuple[tuple[Term, ...], ...]
    phrases: tuple[Phrase, ...]

    @property
    def best(self) -> float:
        """More than any tool can get; 0 if nothing is found."""
        return 2 * sum(term.best for term in self.terms) + sum(p.bonus for p in self.phrases)

    def scores(self) -> Scores:
        """The share of each tool."""
        own = self._own()
        return own + self.scorer.lift(own)

    def parts(self, doc: int) -> list[dict[str, object]]:
        """What each word, phrase and the group brought to one tool; the sum is its share."""
        sentence, factor = self._best_sentence(doc)
        found = [
            (
                term.hits.term,
                field,
                impact * term.weight * (1 + factor * (term.hits.term in sentence)),
            )
            for term in self.terms
            for field, impact in self.scorer.by_field(term.hits, doc).items()
        ]
        found += [
            (phrase.text, "phrase", phrase.bonus) for phrase in self.phrases if doc in phrase.docs
        ]
        lift = float(self.scorer.lift(self._own())[doc])
        found += [("", "group", lift * self.best)] if lift else []
        return [
            {"word": word, "field": field, "score": value / self.best}
            for word, field, value in found
        ]

    def _best_sentence(self, doc: int) -> tuple[frozenset[str], float]:
        """The terms of the sentence that fits a tool best, and how much of its evidence counts again."""
        best, kept, factor = 0.0, frozenset[str](), 0.0
        for terms in self.sentences:
            scores, in_full = (float(array[doc]) for array in self._sums(terms))
            if in_full > best:
                best, factor = in_full, in_full / scores
                kept = frozenset(term.hits.term for term in terms)
        return kept, factor

    def _own(self) -> Scores:
        """The share of each tool without its group."""
        if not self.terms:
            return np.zeros(self.scorer.size)
        scores, in_full = self._sums(self.terms)
        if len(self.sentences) > 1:
            in_full = np.maximum.reduce([self._sums(terms)[1] for terms in self.sentences])
        scores += in_full
        for phrase in self.phrases:
            scores[phrase.docs] += phrase.bonus
        scores /= self.best
        return scores

    def _sums(self, terms: Sequence[Term]) -> tuple[Scores, Scores]:
        """What some terms bring to each tool, and that by how much of them it has."""
        docs, impacts, bests = _found(terms)
        size = self.scorer.size
        scores = np.bincount(docs, impacts, size)
        coverage = np.bincount(docs, bests, size)
        coverage /= sum(term.best for term in terms)
        return scores, scores * np.sqrt(np.minimum(coverage, 1))


def collect(
    scorer: Scorer, words: Sequence[Spoken], sentences: Sequence[Sequence[Spoken]]
) -> Evidence:
    """The evidence of some words and the sentences they stand in; what finds nothing is left out."""
    joined = [_joined(scorer, sentence) for sentence in sentences]
    every = [*_terms(words), *chain.from_iterable(joined)]
    by_sentence = (
        _each_once((*_terms(sentence), *pairs))
        for sentence, pairs in zip(sentences, joined, strict=True)
    )
    phrases = {
        phrase.text: phrase for sentence in sentences for phrase in _phrases(scorer, sentence)
    }
    return Evidence(
        scorer, _each_once(every), tuple(filter(None, by_sentence)), tuple(phrases.values())
    )


def _terms(words: Iterable[Spoken]) -> Iterator[Term]:
    return chain.from_iterable(word.terms for word in words)


def _each_once(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms that find something, each as heavy as it is anywhere."""
    kept: dict[str, Term] = {}
    for term in terms:
        name = term.hits.term
        if len(term.hits.docs) and (name not in kept or kept[name].weight < term.weight):
            kept[name] = term
    return tuple(kept.values())


def _joined(scorer: Scorer, sentence: Sequence[Spoken]) -> list[Term]:
    """What each two neighbouring words find as one."""
    texts = [word.text.lower() if _is_plain(word.text) else "" for word in sentence]
    found = (scorer.joined(left, right) for left, right in pairwise(texts) if left and right)
    return [Term(hits, JOINED) for hits in found if hits is not None]


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isalpha()


def _phrases(scorer: Scorer, sentence: Sequence[Spoken]) -> Iterator[Phrase]:
    terms = list(_terms(sentence))
    texts = [term.hits.term for term in terms]
    for at, docs in scorer.side_by_side(texts):
        if texts[at] != texts[at + 1]:
            weaker = min(terms[at].best, terms[at + 1].best)
            yield Phrase(f"{texts[at]} {texts[at + 1]}", docs, PHRASE * 2 * weaker)


def _found(terms: Sequence[Term]) -> tuple[Docs, Scores, Scores]:
    """The tools that some terms find, one after the other, what each brings, and could at best."""
    counts = [len(term.hits.docs) for term in terms]
    docs = np.concatenate([term.hits.docs for term in terms])
    impacts = np.concatenate([term.hits.impacts for term in terms])
    weights = np.array([term.weight for term in terms])
    bests = np.array([term.best for term in terms])
    return docs, impacts * np.repeat(weights, counts), np.repeat(bests, counts)
