"""The searchable content of a catalogue: postings, lengths and forms of names; never changed once built.

Which of it an ask may see is decided in ``view``.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from session_runtime.normal_form import normal
from session_runtime.registry.names import MAX_NAME_LENGTH, WireNames
from session_runtime.registry.spec import ToolSpec
from session_runtime.search.directory import Entry
from session_runtime.search.fields import FieldWeights
from session_runtime.search.han import simplify
from session_runtime.search.spelling import NearTexts, Spelling
from session_runtime.search.terms import Lexicon

TERM_SHIFT, DOC_SHIFT, FIELD_SHIFT = 36, 12, 8
"""An entry is ``term << 36 | doc << 12 | field << 8 | count``; a word or a phrase stands like a term."""

DOC_BITS = (1 << TERM_SHIFT - DOC_SHIFT) - 1
"""The number of a document in an entry that is shifted by ``DOC_SHIFT``."""

PARTED = 0x80
"""Stands in a count for a word that a name holds as two: ``keyvault`` in ``key_vault``."""

Positions = tuple[int, ...]
Key = tuple[object, ...]
NONE: Positions = ()
LONGEST_SPELLING = 8
"""How many times as long as its name the spelling of a tool may be: apart (``é``) or escaped (``&amp;``)."""

LONGEST_TEXT = LONGEST_SPELLING * MAX_NAME_LENGTH
"""A text of more characters spells no tool, whatever tools there are."""

_NOT_COMPACT = re.compile(r"[\W_]+")
_COMPACT = {code: chr(code).lower() if chr(code).isalnum() else None for code in range(128)}
_SEGMENT_ENDS = re.compile(r"[./:]|__")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


def fold(text: str) -> str:
    """The form in which spellings are compared when case does not matter."""
    return text.casefold() if text.isascii() else simplify(normal("NFKC", text)).casefold()


def compact(text: str) -> str:
    """Letters and digits only, case-folded: one form for ``get_user``, ``getUser``, ``Get User``."""
    if text.isascii():
        return text.translate(_COMPACT)
    return _NOT_COMPACT.sub("", fold(text))


def name_forms(spec: ToolSpec) -> tuple[str, ...]:
    """The compact forms of all by which a tool may be called."""
    forms = dict.fromkeys(map(compact, called_by(spec.name, spec.aliases)))
    forms.pop("", None)
    return tuple(forms)


def called_by(name: str, aliases: tuple[str, ...]) -> tuple[str, ...]:
    """The name of a tool, what follows each of its segments, and its aliases.

    What a path leaves to be filled in, as ``{videoId}``, is the name of nothing.
    """
    tails = [name[end.end() :] for end in _SEGMENT_ENDS.finditer(name)]
    named = [tail for tail in tails if _PLACEHOLDER.fullmatch(tail) is None]
    return (name, *named, *aliases)


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """What one tool contributes; reused by the next generation if ``key`` is the same.

    ``entries`` hold ``term << 36 | field << 8 | count``, ``words`` the number of each word as written,
    ``phrases`` that of each two neighbouring words of the description, ``lengths`` the number of words
    by field.
    """

    key: Key
    entries: npt.NDArray[np.int64]
    words: npt.NDArray[np.int32]
    phrases: npt.NDArray[np.int32]
    lengths: tuple[int, ...]
    aliases: tuple[str, ...]
    forms: tuple[str, ...]
    group: str
    deed: int


@dataclass(frozen=True, slots=True, eq=False)
class NameTables:
    """What depends on names, wire names and aliases alone; shared by corpora in which these are the same.

    Tools by the spellings that name them: case-folded, wire name or alias, compact form; ``near`` finds
    case-folded ones. ``aliases`` are by position, of tools that have some; ``entries`` are the lines of
    the directory and ``listing`` the positions in its order; ``name_rank`` orders tools by name. A text
    with more than ``blanks`` inside names no tool: it may be but a form of a name.
    """

    names: tuple[str, ...]
    wire: WireNames
    positions: Mapping[str, int]
    folded: Mapping[str, Positions]
    other: Mapping[str, Positions]
    compact: Mapping[str, Positions]
    near: NearTexts
    aliases: Mapping[int, tuple[str, ...]]
    entries: tuple[Entry, ...]
    name_rank: npt.NDArray[np.int64]
    listing: Positions
    blanks: int


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """For the term with number ``t``: the slice ``offsets[t]:offsets[t + 1]`` of the other arrays.

    An entry says that the tool ``docs`` holds the term ``counts`` times, or ``parted``, in the field
    ``cells // tools``; ``cells`` is ``field * tools + doc``. Entries of one term and tool stand
    together: ``pairs`` is where each such pair begins, ``pair_offsets`` is for ``pairs`` what
    ``offsets`` is for the entries; ``naming`` are the pairs of a term and a tool whose name holds it.
    """

    offsets: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    cells: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint8]
    parted: npt.NDArray[np.bool_]
    pairs: npt.NDArray[np.int64]
    pair_offsets: npt.NDArray[np.int64]
    naming: npt.NDArray[np.bool_]

    def entries(self, tools: int) -> npt.NDArray[np.int64]:
        """The entries that the arrays were made from, sorted."""
        terms = _numbers(self.offsets) << TERM_SHIFT
        fields = self.cells // tools << FIELD_SHIFT
        return terms | _at_docs(self.docs) | fields | self.parted * PARTED | self.counts

    def slice_of(self, term: int | None) -> slice:
        """Where the entries of a term are; empty for a term that no tool has."""
        if term is None or term + 1 >= len(self.offsets):
            return slice(0, 0)
        return slice(int(self.offsets[term]), int(self.offsets[term + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class Holders:
    """The tools that hold a word as written: for word ``w``, ``docs[offsets[w]:offsets[w + 1]]``."""

    offsets: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]

    @property
    def entries(self) -> npt.NDArray[np.int64]:
        """The entries that the arrays were made from, sorted."""
        return _numbers(self.offsets) << TERM_SHIFT | _at_docs(self.docs)

    def of(self, word: int) -> npt.NDArray[np.int32]:
        """The tools, visible or not; none for a word that no tool has."""
        if word + 1 >= len(self.offsets):
            return self.docs[:0]
        return self.docs[self.offsets[word] : self.offsets[word + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class Phrases:
    """Which tools have two words side by side in their descriptions: both arrays belong together.

    ``numbers`` ascend, and ``docs`` within a number.
    """

    numbers: npt.NDArray[np.int32]
    docs: npt.NDArray[np.int32]

    @property
    def entries(self) -> npt.NDArray[np.int64]:
        """The entries that the arrays were made from, sorted."""
        return self.numbers.astype(np.int64) << TERM_SHIFT | _at_docs(self.docs)

    def of(self, phrases: Sequence[int]) -> list[npt.NDArray[np.int32]]:
        """The tools, visible or not, that have each phrase."""
        numbers = self.numbers.data  # of which single ones are read faster
        firsts = self.numbers.searchsorted(np.array(phrases, dtype=np.int32)).tolist()
        found: list[npt.NDArray[np.int32]] = []
        for phrase, first in zip(phrases, firsts, strict=True):
            known = first < len(numbers) and numbers[first] == phrase
            after = bisect_right(numbers, phrase, first) if known else first
            found.append(self.docs[first:after])
        return found


def _numbers(offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Whose slice each place is in."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _at_docs(docs: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return docs.astype(np.int64) << DOC_SHIFT


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Everything about a catalogue that searching needs; tools are numbered by position.

    ``lengths`` are the words of each field (rows) of each tool (columns), ``groups`` the number of each
    tool's group, ``deeds`` what its name says it does; ``synonyms`` are the groups of
    words that the lexicon knows beside its own; ``documents`` stand in the order of positions;
    ``pairs_by_tool`` are the numbers of terms that each tool holds.
    """

    tables: NameTables
    postings: Postings
    holders: Holders
    phrases: Phrases
    groups: npt.NDArray[np.int64]
    deeds: npt.NDArray[np.int8]
    lengths: npt.NDArray[np.int64]
    lexicon: Lexicon
    synonyms: tuple[str, ...]
    spelling: Spelling
    weights: FieldWeights
    documents: Mapping[Key, Document]
    pairs_by_tool: npt.NDArray[np.int64]

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical names by position."""
        return self.tables.names
