"""Builds a corpus: a second of work for thousands of tools, so not for the thread of the event loop."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from session_runtime.registry.names import TOOL_SEARCH, WireNames, build_wire_names
from session_runtime.registry.spec import ToolSpec
from session_runtime.search.corpus import (
    DOC_BITS,
    DOC_SHIFT,
    FIELD_SHIFT,
    PARTED,
    TERM_SHIFT,
    Corpus,
    Document,
    Holders,
    Key,
    NameTables,
    Phrases,
    Positions,
    Postings,
    fold,
)
from session_runtime.search.directory import listing_key, tool_entry
from session_runtime.search.fields import NAMING, Field, FieldWeights
from session_runtime.search.moving import Moves, moves_since
from session_runtime.search.reading import read_documents
from session_runtime.search.spelling import build_spelling, near_texts
from session_runtime.search.synonyms import groups
from session_runtime.search.terms import STOP_WORDS, Lexicon, normalise

OWN_FORMS_KEPT = 20_000

_STALE_SHARE = 2
_DOCS_PER_SORT = 500


def build_corpus(
    specs: Sequence[ToolSpec],
    names: WireNames,
    weights: FieldWeights,
    previous: Corpus | None,
    synonyms: tuple[str, ...] = (),
) -> Corpus:
    """Build a corpus; tools that ``previous`` holds with the same content are taken from there."""
    reusable = previous if previous is not None and _fresh(previous, synonyms) else None
    lexicon = reusable.lexicon if reusable is not None else _new_lexicon(synonyms)
    documents = _read(specs, lexicon, reusable.documents if reusable else {})
    moves = moves_since(reusable, documents)
    postings = _post(documents, len(lexicon), moves)
    holders = _hold(documents, len(lexicon.words), moves)
    phrases = _side_by_side(documents, moves)
    tables = _name_tables(specs, documents, names, previous)
    spelling = build_spelling(lexicon.words, reusable.spelling if reusable is not None else None)
    lengths = np.array([document.lengths for document in documents], dtype=np.int64)
    return Corpus(
        tables=tables,
        postings=postings,
        holders=holders,
        phrases=phrases,
        groups=_groups(documents),
        deeds=np.array([document.deed for document in documents], dtype=np.int8),
        lengths=lengths.reshape(len(specs), len(Field)).T.copy(),
        lexicon=lexicon,
        synonyms=synonyms,
        spelling=spelling,
        weights=weights.bounded(),
        documents=MappingProxyType({document.key: document for document in documents}),
        pairs_by_tool=np.bincount(postings.docs[postings.pairs], minlength=len(specs)),
    )


def _fresh(previous: Corpus, synonyms: tuple[str, ...]) -> bool:
    """Whether the shared lexicon knows these synonyms, and most of its words are still in use."""
    if previous.synonyms != synonyms:
        return False
    used = np.count_nonzero(np.diff(previous.postings.offsets))
    return len(previous.lexicon) <= len(STOP_WORDS) + _STALE_SHARE * int(used)


def _new_lexicon(synonyms: tuple[str, ...]) -> Lexicon:
    lexicon = Lexicon()
    for word in sorted(STOP_WORDS):
        lexicon.learn_stop_word(word)
    for group in (*groups(), *(normalise(group).casefold() for group in synonyms)):
        lexicon.learn_synonyms(group)
    return lexicon


def _read(
    specs: Sequence[ToolSpec], lexicon: Lexicon, known: Mapping[Key, Document]
) -> list[Document]:
    """The documents of all tools; of those that are known already nothing is read."""
    keys: list[Key] = [
        (spec.name, spec.digest, spec.aliases, spec.search_hints, spec.examples) for spec in specs
    ]
    new = [at for at, key in enumerate(keys) if key not in known]
    read = read_documents([keys[at] for at in new], [specs[at] for at in new], lexicon)
    documents = {key: known[key] for key in keys if key in known}
    documents |= {document.key: document for document in read}
    return [documents[key] for key in keys]


def _post(documents: Sequence[Document], terms: int, moves: Moves | None) -> Postings:
    """Turn the entries of all documents into postings."""
    if moves is None:
        entries = _sorted([document.entries for document in documents])
    else:
        old = moves.then.postings.entries(len(moves.then.names))
        entries = moves.entries(old, documents, lambda document: document.entries)
    docs = _docs(entries)
    cells = (entries >> FIELD_SHIFT & 0xF).astype(np.int32) * len(documents) + docs
    offsets = _offsets(entries, terms)
    pairs = np.flatnonzero(np.diff(entries >> DOC_SHIFT, prepend=-1))
    counts = (entries & PARTED - 1).astype(np.uint8)
    parted = (entries & PARTED).astype(np.bool_)
    naming = _any_by_pair(cells < len(NAMING) * len(documents), pairs)
    at = np.searchsorted(pairs, offsets)
    return Postings(offsets, docs, cells, counts, parted, pairs, at, naming)


def _any_by_pair(
    held: npt.NDArray[np.bool_], pairs: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    return np.logical_or.reduceat(held, pairs) if len(pairs) else held


def _hold(documents: Sequence[Document], words: int, moves: Moves | None) -> Holders:
    if moves is None:
        entries = _sorted([document.words for document in documents], TERM_SHIFT)
    else:
        old = moves.then.holders.entries
        entries = moves.entries(old, documents, lambda document: _at_terms(document.words))
    return Holders(_offsets(entries, words), _docs(entries))


def _side_by_side(documents: Sequence[Document], moves: Moves | None) -> Phrases:
    if moves is None:
        entries = _sorted([document.phrases for document in documents], TERM_SHIFT)
    else:
        old = moves.then.phrases.entries
        entries = moves.entries(old, documents, lambda document: _at_terms(document.phrases))
    return Phrases((entries >> TERM_SHIFT).astype(np.int32), _docs(entries))


def _offsets(entries: npt.NDArray[np.int64], numbers: int) -> npt.NDArray[np.int64]:
    """Where the entries of each number begin, and where the last ones end."""
    offsets = np.zeros(numbers + 1, dtype=np.int64)
    np.cumsum(np.bincount(entries >> TERM_SHIFT, minlength=numbers), out=offsets[1:])
    return offsets


def _groups(documents: Sequence[Document]) -> npt.NDArray[np.int64]:
    numbers: dict[str, int] = {}
    groups = [numbers.setdefault(document.group, len(numbers)) for document in documents]
    return np.array(groups, dtype=np.int64)


def _at_terms(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return numbers.astype(np.int64) << TERM_SHIFT


def _sorted(
    by_document: Sequence[npt.NDArray[np.int64] | npt.NDArray[np.int32]], shift: int = 0
) -> npt.NDArray[np.int64]:
    """Put the document's number into each entry; sort by term or word, then document, then field."""
    chunks: list[npt.NDArray[np.int64]] = []
    for start in range(0, len(by_document), _DOCS_PER_SORT):
        chunk = by_document[start : start + _DOCS_PER_SORT]
        numbers = np.repeat(np.arange(start, start + len(chunk)), list(map(len, chunk)))
        found = np.concatenate(chunk).astype(np.int64) << shift
        chunks.append(np.sort(found | numbers << DOC_SHIFT))
    entries = np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int64)
    entries.sort(kind="stable")  # merges the sorted chunks
    return entries


def _docs(entries: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    return (entries >> DOC_SHIFT & DOC_BITS).astype(np.int32)


def _name_tables(
    specs: Sequence[ToolSpec],
    documents: Sequence[Document],
    wire: WireNames,
    previous: Corpus | None,
) -> NameTables:
    names = tuple(spec.name for spec in specs)
    if previous is not None and _named_alike(previous, names, documents, wire):
        return previous.tables
    folded: dict[str, Positions] = {}
    other: dict[str, Positions] = {}
    compact: dict[str, Positions] = {}
    for at in sorted(range(len(specs)), key=lambda at: specs[at].name):
        spec = specs[at]
        _add(folded, (spec.name,), at)
        _add(other, (*_wire_forms(spec.name, wire), *spec.aliases), at)
        for form in documents[at].forms:
            compact[form] = (*compact.get(form, ()), at)
    return NameTables(
        names=names,
        wire=wire,
        positions=MappingProxyType({name: at for at, name in enumerate(names)}),
        folded=MappingProxyType(folded),
        other=MappingProxyType(other),
        compact=MappingProxyType(compact),
        near=near_texts(filter(None, folded)),
        aliases=MappingProxyType(
            {at: spec.aliases for at, spec in enumerate(specs) if spec.aliases}
        ),
        entries=tuple(tool_entry(name, _own_forms(name, wire.separator)[1]) for name in names),
        name_rank=_ranks(names),
        listing=tuple(sorted(range(len(names)), key=lambda at: listing_key(names[at]))),
        blanks=max((spelling.count(" ") for spelling in chain(names, folded, other)), default=0),
    )


def _named_alike(
    previous: Corpus, names: tuple[str, ...], documents: Sequence[Document], wire: WireNames
) -> bool:
    """Whether all that ``NameTables`` depends on is as it was."""
    if previous.names != names or previous.tables.wire != wire:
        return False
    then = previous.documents.values()
    return all(old.aliases == new.aliases for old, new in zip(then, documents, strict=True))


def _add(table: dict[str, Positions], spellings: Sequence[str], at: int) -> None:
    """Add a tool under its spellings, save the loader's: that always names the loader."""
    for form in dict.fromkeys(map(fold, spellings)):
        if form != TOOL_SEARCH:
            table[form] = (*table.get(form, ()), at)


def _wire_forms(name: str, names: WireNames) -> tuple[str, ...]:
    """The wire names a tool has or would have: others, maybe hidden, decide which is in force."""
    return (names.encode(name), *_own_forms(name, names.separator))


@lru_cache(maxsize=OWN_FORMS_KEPT)
def _own_forms(name: str, separator: str) -> tuple[str, str]:
    """The wire names that depend on nothing but the name: were it alone, and were it unknown."""
    alone = build_wire_names((name,), separator).encode(name)
    return alone, WireNames({}, {}, separator).encode(name)


def _ranks(names: Sequence[str]) -> npt.NDArray[np.int64]:
    ranks = np.empty(len(names), dtype=np.int64)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks
