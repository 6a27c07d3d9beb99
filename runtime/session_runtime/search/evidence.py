"""Adds up what the words of a query say for each tool: alone, in their sentence, side by side (TS-8).

What one word finds is decided in ``rank``, what outranks what in ``keywords``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from session_runtime.search.deeds import NO_DEED, deed_of
from session_runtime.search.impacts import Docs, Scores
from session_runtime.search.rank import Hits, Scorer

PHRASE = 0.1
"""What two words side by side add, as a share of what the weaker of them could bring at best."""

JOINED = 0.35
"""How much two neighbouring words count as one word."""

SMALL = 0.35
"""What a small word adds where a name has it beside another word of the request."""

VERB_WITHIN = 3
"""How far before a small word its verb may stand: *turn the light off*."""

MOST_TERMS_OF_A_DEED = 12


class Term(NamedTuple):
    """What a word finds, how much it counts in this query, and more than it can bring to any tool."""

    hits: Hits
    weight: float
    best: float


class Spoken(NamedTuple):
    """A word of the query as written, and the terms it is searched by, in their order.

    A ``small`` one (*on*, *before*) has none of its own: it counts together with another word.
    """

    text: str
    terms: tuple[Term, ...]
    small: Hits | None = None


class Phrase(NamedTuple):
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
    deed: int
    best: float

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
                impact * (term.weight + factor * sentence.get(term.hits.term, 0.0)),
            )
            for term in self.terms
            for field, impact in self.scorer.by_field(term.hits, doc).items()
        ]
        found += [
            (phrase.text, "phrase", phrase.bonus) for phrase in self.phrases if doc in phrase.docs
        ]
        best = self.best / (float(self.scorer.fit(self.deed)[doc]) if self.deed else 1)
        lift = float(self.scorer.lift(self._own())[doc])
        found += [("", "group", lift * best)] if lift else []
        return [
            {"word": word, "field": field, "score": value / best} for word, field, value in found
        ]

    def _best_sentence(self, doc: int) -> tuple[dict[str, float], float]:
        """The weights of the terms in the sentence that fits a tool best, and how much of it counts again."""
        best, kept, factor = 0.0, dict[str, float](), 0.0
        for terms in self.sentences:
            scores, in_full = (float(array[doc]) for array in self._sums(terms))
            if in_full > best:
                best, factor = in_full, in_full / scores
                kept = {term.hits.term: term.weight for term in terms}
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
        return scores * self.scorer.fit(self.deed) if self.deed else scores

    def _sums(self, terms: Sequence[Term]) -> tuple[Scores, Scores]:
        """What some terms bring to each tool, and that by how much of them it has."""
        docs = np.concatenate([term.hits.docs for term in terms])
        impacts = np.concatenate([term.hits.impacts for term in terms])
        found = [len(term.hits.docs) for term in terms]
        weights, bests = [term.weight for term in terms], [term.best for term in terms]
        if weights.count(1.0) != len(weights):
            impacts *= np.array(weights).repeat(found)
        scores = self._added(docs, impacts)
        coverage = self._added(docs, np.array(bests).repeat(found))
        coverage /= sum(bests)
        return scores, scores * np.sqrt(np.minimum(coverage, 1, out=coverage), out=coverage)

    def _added(self, docs: Docs, figures: Scores) -> Scores:
        """The sum of the figures for each tool."""
        return np.bincount(docs, figures, self.scorer.size).astype(np.float64, copy=False)


def weighted(hits: Hits, weight: float) -> Term:
    """What a word finds, as a term that counts so much."""
    return Term(hits, weight, hits.best * weight)


def collect(
    scorer: Scorer, sentences: Sequence[Sequence[Spoken]], texts: Iterable[str]
) -> Evidence:
    """The evidence of the words of some sentences; what finds nothing is left out.

    ``texts`` are all words in their order, for the deed; a request of many may be about several.
    """
    found = tuple(filter(None, (_each_once(_sentence(scorer, words)) for words in sentences)))
    terms = found[0] if len(found) == 1 else _each_once(chain.from_iterable(found))
    by_text = {phrase.text: phrase for words in sentences for phrase in _phrases(scorer, words)}
    small = chain.from_iterable(_with_small_words(scorer, words) for words in sentences)
    phrases = (*by_text.values(), *small)
    deed = deed_of(texts) if len(terms) <= MOST_TERMS_OF_A_DEED else NO_DEED
    best = 2 * sum(term.best for term in terms) + sum(phrase.bonus for phrase in phrases)
    return Evidence(scorer, terms, found, phrases, deed, best)


def _sentence(scorer: Scorer, words: Sequence[Spoken]) -> Iterator[Term]:
    """The terms of a sentence, and what each two neighbouring words find as one.

    A small word may be parted from its verb: *log me in* is a login too.
    """
    before: list[str] = []
    beside = False
    for word in words:
        yield from word.terms
        text = word.text.lower() if word.text.isascii() and word.text.isalpha() else ""
        small = word.small is not None
        reach = VERB_WITHIN if small else int(beside)
        for left in before[-reach:] if text and reach else ():
            hits = scorer.joined(left, text)
            if hits is not None:
                yield weighted(hits, JOINED)
        beside = bool(text) and not small
        before = before if small else [*before[1 - VERB_WITHIN :], text]


def _each_once(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms that find something, each as it says most."""
    kept: dict[str, Term] = {}
    for term in terms:
        name = term.hits.term
        if len(term.hits.docs) and (name not in kept or kept[name].best < term.best):
            kept[name] = term
    return tuple(kept.values())


def _with_small_words(scorer: Scorer, words: Sequence[Spoken]) -> Iterator[Phrase]:
    """Where a name has a small word of the sentence beside another word of it: ``turn_on_light``."""
    small = [(word.text, word.small) for word in words if word.small is not None]
    if not small:
        return
    named = np.zeros(scorer.size, dtype=np.bool_)
    for word in words:
        for term in word.terms:
            named[term.hits.named] = True
    for text, hits in small:
        docs = hits.named[named[hits.named]]
        if len(docs):
            yield Phrase(text, docs, SMALL * 2 * hits.best)


def _phrases(scorer: Scorer, words: Sequence[Spoken]) -> Iterator[Phrase]:
    terms = [term for word in words for term in word.terms]
    texts = [term.hits.term for term in terms]
    for at, docs in scorer.side_by_side(texts):
        if texts[at] != texts[at + 1]:
            weaker = min(terms[at].best, terms[at + 1].best)
            yield Phrase(f"{texts[at]} {texts[at + 1]}", docs, PHRASE * 2 * weaker)
