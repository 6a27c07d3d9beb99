"""How much each term says for each visible tool, computed for a whole view at once (TS-8).

Rarity, length norms and with them every figure here depend on the visible tools alone.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from session_runtime.search.corpus import Corpus
from session_runtime.search.fields import LENGTH_NORMS

Docs = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]

UNNAMED = 0.75
"""The share that a word counts which no tool has in its name: mostly an example or a detail."""


@dataclass(frozen=True, slots=True, eq=False)
class Impacts:
    """For the term with number ``t``: the slice ``offsets[t]:offsets[t + 1]`` of ``docs`` and ``values``.

    ``docs`` are the visible tools that hold the term, ascending, and ``values`` what it brings to each,
    below ``best[t]``. ``named``, by ``named_offsets``, are those of them whose name holds it. What is
    looked up term by term is no NumPy array, which would take three times as long.
    """

    offsets: Sequence[int]
    docs: Docs
    values: Scores
    named_offsets: Sequence[int]
    named: Docs
    best: Sequence[float]

    def held(self, term: int) -> bool:
        """Whether a visible tool holds a term."""
        return term < len(self.best) and self.best[term] > 0


def compute_impacts(
    corpus: Corpus, visible: npt.NDArray[np.bool_], cell_weights: Scores
) -> Impacts:
    """Weighted counts by field, saturated, times rarity, for every term and visible tool."""
    postings, saturation = corpus.postings, corpus.weights.saturation
    if not len(postings.pairs):
        terms = len(postings.offsets) - 1
        none, zeros = np.empty(0, np.int64), [0] * (terms + 1)
        return Impacts(zeros, none, np.empty(0), zeros, none, [0.0] * terms)
    found_cells = np.take(cell_weights, postings.cells)  # faster than by brackets
    found_cells *= postings.counts
    evidence = np.add.reduceat(found_cells, postings.pairs)
    found = (evidence > 0).nonzero()[0]
    offsets = np.searchsorted(found, postings.pair_offsets)
    holders = np.diff(offsets)
    named_at = postings.naming[found].nonzero()[0]
    named = np.searchsorted(named_at, offsets)
    best = _rarities(holders, int(np.count_nonzero(visible)), corpus.weights.rarity)
    best *= saturation + 1
    best[np.diff(named) == 0] *= UNNAMED
    kept = evidence[found]
    values = np.repeat(best, holders)
    values *= kept / (kept + saturation)
    docs = np.take(postings.docs, np.take(postings.pairs, found)).astype(np.int64)
    return Impacts(
        array("q", offsets.tobytes()),
        docs,
        values,
        array("q", named.tobytes()),
        docs[named_at],
        array("d", best.tobytes()),
    )


def _rarities(holders: npt.NDArray[np.int64], count: int, exponent: float) -> Scores:
    """One by one for each number of holders: vector code may round the last digit by position."""
    by_holders = np.zeros(count + 1)
    for number in np.bincount(holders).nonzero()[0].tolist():
        if number:
            by_holders[number] = math.log1p(count / number) ** exponent
    return by_holders[holders]


def cell_weights(corpus: Corpus, visible: npt.NDArray[np.bool_]) -> Scores:
    """The weight of one occurrence by field and tool, over the field's relative length; 0 if hidden."""
    weights = np.array(corpus.weights.by_field())[:, None]
    norms = np.array(LENGTH_NORMS)[:, None]
    totals = corpus.lengths[:, visible].sum(axis=1, keepdims=True)
    relative = corpus.lengths * np.count_nonzero(visible) / np.maximum(totals, 1)
    cells: Scores = weights / (1 - norms + norms * relative) * visible
    return cells.ravel()
