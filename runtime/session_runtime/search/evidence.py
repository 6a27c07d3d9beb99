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

JOINED = 0.5
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
        values = [float(self._sentence(sentence)[doc]) for sentence in self.sentences]
        sentence = self.sentences[int(np.argmax(values))] if values else ()
        in_sentence = {term.hits.term for term in sentence}
        factor = float(np.sqrt(self._coverage(sentence)[doc])) if sentence else 0.0
        found = [
            (
                term.hits.term,
                field,
                impact * term.weight * (1 + factor * (term.hits.term in in_sentence)),
            )
            for term in self.terms
            for field, impact in self.scorer.by_field(term.hits, doc).items()
        ]
        found += [(p.text, "phrase", p.bonus) for p in self.phrases if doc in p.docs]
        best = self.best
        parts: list[dict[str, object]] = [
            {"word": word, "field": field, "score": value / best} for word, field, value in found
        ]
        lift = float(self.scorer.lift(self._own())[doc])
        return parts + ([{"word": "", "field": "group", "score": lift}] if lift else [])

    def _own(self) -> Scores:
        """The share of each tool without its group."""
        if not self.terms:
            return np.zeros(self.scorer.size)
        scores = _sum(self.terms, self.scorer.size)
        if len(self.sentences) == 1:
            scores *= 1 + np.sqrt(self._coverage(self.terms))
        else:
            scores += np.maximum.reduce([self._sentence(terms) for terms in self.sentences])
        for phrase in self.phrases:
            scores[phrase.docs] += phrase.bonus
        scores /= self.best
        return scores

    def _sentence(self, terms: Sequence[Term]) -> Scores:
        return _sum(terms, self.scorer.size) * np.sqrt(self._coverage(terms))

    def _coverage(self, terms: Sequence[Term]) -> Scores:
        """The share of a sentence that each tool has, rare words counting more."""
        bests = [term.best for term in terms]
        return np.minimum(_spread(terms, bests, self.scorer.size) / sum(bests), 1)


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
    return [
        Term(scorer.joined(left, right), JOINED)
        for left, right in pairwise(texts)
        if left and right
    ]


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isalpha()


def _phrases(scorer: Scorer, sentence: Sequence[Spoken]) -> Iterator[Phrase]:
    for left, right in pairwise(_terms(sentence)):
        docs = scorer.side_by_side(left.hits.term, right.hits.term)
        if len(docs) and left.hits.term != right.hits.term:
            text = f"{left.hits.term} {right.hits.term}"
            yield Phrase(text, docs, PHRASE * 2 * min(left.best, right.best))


def _sum(terms: Sequence[Term], size: int) -> Scores:
    return _spread(terms, [term.hits.impacts * term.weight for term in terms], size)


def _spread(terms: Sequence[Term], values: Sequence[float] | Sequence[Scores], size: int) -> Scores:
    """The sum of what each term gives to the tools it finds."""
    spread = np.zeros(size)
    for term, value in zip(terms, values, strict=True):
        spread[term.hits.docs] += value
    return spread
