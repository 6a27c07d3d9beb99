"""An index made from the one before is the index that would have been made from nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import FieldWeights, SearchIndex, build_index
from tests.search.catalogues import builds_indexes, index_of, tool

WORDS = ("river", "rivers", "level", "of the", "ReadMe", "天气预报", "river level", "zebra")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
Catalogue = list[ToolSpec]
Edit = Callable[[Catalogue, int], Catalogue]


def made_anew(specs: Sequence[ToolSpec], previous: SearchIndex) -> SearchIndex:
    names = build_wire_names([spec.name for spec in specs], "__")
    return build_index(specs, names, FieldWeights(), previous)


def lists_by_number(
    offsets: npt.NDArray[np.int64], values: Sequence[Any], numbers: Mapping[str, int]
) -> dict[str, list[Any]]:
    """What stands in the slice of each word; words that no tool has are left out."""
    found = {
        word: list(values[offsets[number] : offsets[number + 1]])
        for word, number in numbers.items()
        if number + 1 < len(offsets)
    }
    return {word: held for word, held in found.items() if held}


def content(index: SearchIndex) -> dict[str, Any]:
    """All that an index holds, whatever numbers its lexicon gave to words."""
    corpus = index.corpus
    posted, held, side_by_side = corpus.postings, corpus.holders, corpus.phrases
    entries = list(zip(posted.docs, posted.cells, posted.counts, posted.parted, strict=True))
    words = corpus.lexicon.words
    tables = corpus.tables
    return {
        "entries": lists_by_number(posted.offsets, entries, corpus.lexicon.numbers),
        "pairs": lists_by_number(
            posted.pair_offsets, posted.docs[posted.pairs].tolist(), corpus.lexicon.numbers
        ),
        "held": lists_by_number(held.offsets, held.docs.tolist(), words),
        "phrases": (side_by_side.numbers.tolist(), side_by_side.docs.tolist()),
        "lengths": corpus.lengths.tolist(),
        "groups": corpus.groups.tolist(),
        "deeds": corpus.deeds.tolist(),
        "names": (tables.names, tables.positions, tables.folded, tables.other, tables.compact),
        "shown": ([*map(astuple, tables.entries)], tables.name_rank.tolist(), tables.listing),
    }


def other_text(specs: Catalogue, at: int, text: str) -> Catalogue:
    changed = tool(specs[at].name, text, aliases=specs[at].aliases)
    return [*specs[:at], changed, *specs[at + 1 :]]


def new_name(specs: Catalogue) -> str:
    taken = {spec.name for spec in specs}
    return next(name for number in count() if (name := f"new.{number}") not in taken)


EDITS: Mapping[str, Edit] = {
    "removed": lambda specs, at: [*specs[:at], *specs[at + 1 :]],
    "added": lambda specs, at: [*specs[:at], tool(new_name(specs), "zebra"), *specs[at:]],
    "renamed": lambda specs, at: [
        *specs[:at],
        replace(specs[at], name=new_name(specs)),
        *specs[at + 1 :],
    ],
    "alias": lambda specs, at: [
        *specs[:at],
        replace(specs[at], aliases=(*specs[at].aliases, f"also{at}")),
        *specs[at + 1 :],
    ],
    "turned": lambda specs, at: [*specs[at:], *specs[:at]],
}


@pytest.mark.requirement("TS-14")
@builds_indexes
@given(st.data())
def test_after_any_edits_an_index_holds_what_one_made_from_nothing_does(
    data: st.DataObject,
) -> None:
    specs = [
        tool(f"t{at % 3}.tool{at}", text) for at, text in enumerate(data.draw(st.lists(TEXTS)))
    ]
    index = index_of(specs)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(specs)))
        kind = data.draw(st.sampled_from(["text", *EDITS]))
        if kind == "added" or at < len(specs):
            text = data.draw(TEXTS)
            specs = other_text(specs, at, text) if kind == "text" else EDITS[kind](specs, at)
        index = made_anew(specs, index)
        assert content(index) == content(index_of(specs))
    for query in WORDS:
        assert index.rank(query, 9) == index_of(specs).rank(query, 9)
