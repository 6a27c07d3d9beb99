"""Reads tools into documents, many at once; what a corpus makes of these is decided in ``build``."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from session_runtime.registry.spec import ToolSpec
from session_runtime.search.corpus import (
    FIELD_SHIFT,
    PARTED,
    TERM_SHIFT,
    Document,
    Key,
    name_forms,
)
from session_runtime.search.deeds import deed_of
from session_runtime.search.fields import NAMING, OF_NAMES, Field, group_of, split_name, texts
from session_runtime.search.terms import (
    Lexicon,
    joined_neighbours,
    names_in,
    normalise,
    phrase_number,
    runs,
)

MAX_COUNT = 5
"""A word that a description repeats more often counts no more: repeating must not lift a tool."""

_AT_ONCE = 500
_NUMBER_BITS = 27  # of terms, words and phrases
_NUMBERS = (1 << _NUMBER_BITS) - 1
_FIELDS = len(Field)

Numbers = npt.NDArray[np.int64]


class _Placed(NamedTuple):
    """Word numbers, and for each its place: ``document * fields + field``."""

    words: Numbers
    places: Numbers


def read_documents(
    keys: Sequence[Key], specs: Sequence[ToolSpec], lexicon: Lexicon
) -> Iterator[Document]:
    """The documents of some tools, in their order; ``keys`` are what tells them apart."""
    for start in range(0, len(specs), _AT_ONCE):
        batch = slice(start, start + _AT_ONCE)
        yield from _read(keys[batch], specs[batch], lexicon)


def _read(keys: Sequence[Key], specs: Sequence[ToolSpec], lexicon: Lexicon) -> Iterator[Document]:
    written, parted = _words(specs, lexicon)
    terms = _looked_up(lexicon.terms, written.words)
    several = _looked_up(lexicon.terms, parted.words)
    lengths = _lengths(written.places, terms, lexicon, len(specs))
    entries = _by_document(_entries(written.places, terms, parted.places, several), len(specs))
    words = _by_document(_held(written, parted), len(specs))
    phrases = _by_document(_phrases(written.places, terms, lexicon), len(specs))
    for at, (key, spec) in enumerate(zip(keys, specs, strict=True)):
        yield Document(
            key,
            entries[at],
            words[at].astype(np.int32),
            phrases[at].astype(np.int32),
            tuple(lengths[at]),
            spec.aliases,
            name_forms(spec),
            group_of(spec.name),
            deed_of((normalise(split_name(spec.name)[1]),)),
        )


def _words(specs: Sequence[ToolSpec], lexicon: Lexicon) -> tuple[_Placed, _Placed]:
    """The words that stand in the fields of some tools, and those that names hold as two."""
    written: list[int] = []
    parted: list[int] = []
    sizes: list[int] = []
    parted_sizes: list[int] = []
    joined: dict[str, list[int]] = {}
    for spec in specs:
        for field, text in enumerate(texts(spec)):
            before, parted_before = len(written), len(parted)
            written += lexicon.learn(runs(text)) if text else ()
            for name in names_in(text) if text and field in OF_NAMES else ():
                if (words := joined.get(name)) is None:
                    words = joined[name] = lexicon.learn(joined_neighbours(name))
                parted += words
            sizes.append(len(written) - before)
            parted_sizes.append(len(parted) - parted_before)
    return _placed(written, sizes), _placed(parted, parted_sizes)


def _placed(words: list[int], sizes: list[int]) -> _Placed:
    return _Placed(np.array(words, dtype=np.int64), np.repeat(np.arange(len(sizes)), sizes))


def _looked_up(table: Sequence[int], numbers: Numbers) -> Numbers:
    return np.fromiter(map(table.__getitem__, numbers.tolist()), np.int64, len(numbers))


def _lengths(places: Numbers, terms: Numbers, lexicon: Lexicon, documents: int) -> list[list[int]]:
    """The words of each field; words that say nothing make no description long."""
    telling = np.ones(len(lexicon.terms), dtype=np.bool_)
    telling[list(lexicon.stop_numbers)] = False
    counted = telling[terms] | np.isin(places % _FIELDS, NAMING)
    found = np.bincount(places[counted], minlength=documents * _FIELDS)
    lengths: list[list[int]] = found.reshape(documents, _FIELDS).tolist()
    return lengths


def _entries(
    places: Numbers, terms: Numbers, parted_places: Numbers, parted_terms: Numbers
) -> tuple[Numbers, Numbers]:
    """The documents and entries of the terms by field; parted ones that a field has whole are left out."""
    whole = (places << _NUMBER_BITS | terms) << 1
    apart = (parted_places << _NUMBER_BITS | parted_terms) << 1 | 1
    found, counts = np.unique(np.concatenate((whole, apart)), return_counts=True)
    is_apart = found & 1
    found >>= 1
    kept = np.diff(found, prepend=-1) != 0  # what stands whole comes before what is parted
    found, is_apart, counts = found[kept], is_apart[kept], counts[kept]
    marks = np.where(is_apart, PARTED | 1, np.minimum(counts, MAX_COUNT))
    at = found >> _NUMBER_BITS
    entries = (found & _NUMBERS) << TERM_SHIFT | at % _FIELDS << FIELD_SHIFT | marks
    return at // _FIELDS, entries


def _held(written: _Placed, parted: _Placed) -> tuple[Numbers, Numbers]:
    """The documents and each word that they hold as written."""
    documents = np.concatenate((written.places, parted.places)) // _FIELDS
    return _each_once(documents, np.concatenate((written.words, parted.words)))


def _phrases(places: Numbers, terms: Numbers, lexicon: Lexicon) -> tuple[Numbers, Numbers]:
    """The documents and each two words that stand side by side in their descriptions, stop words apart."""
    described = places % _FIELDS == Field.DESCRIPTION
    hashes = _looked_up(lexicon.hashes, terms[described])
    telling = hashes > 0
    hashes, documents = hashes[telling], places[described][telling] // _FIELDS
    beside = documents[:-1] == documents[1:]
    phrases = phrase_number(hashes[:-1][beside], hashes[1:][beside])
    return _each_once(documents[:-1][beside], phrases)


def _each_once(documents: Numbers, numbers: Numbers) -> tuple[Numbers, Numbers]:
    found = np.unique(documents << _NUMBER_BITS | numbers)
    return found >> _NUMBER_BITS, found & _NUMBERS


def _by_document(found: tuple[Numbers, Numbers], documents: int) -> list[Numbers]:
    """The figures of each document, each list apart, so that none keeps those of the others."""
    numbers, figures = found
    ends = np.searchsorted(numbers, np.arange(documents + 1)).tolist()
    return [figures[start:end].copy() for start, end in pairwise(ends)]
