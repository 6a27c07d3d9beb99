"""What one set of visible tools answers to names and queries; any other tool might as well not exist.

Which tools are visible is decided by the mask that ``index`` is asked for, what is loaded in
``session``.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import assert_never

import numpy as np

from session_runtime.lru import Lru
from session_runtime.registry.names import MAX_NAME_LENGTH, TOOL_SEARCH
from session_runtime.search.corpus import (
    LONGEST_SPELLING,
    LONGEST_TEXT,
    NONE,
    Corpus,
    Positions,
    called_by,
    compact,
    fold,
)
from session_runtime.search.deeds import NO_DEED, deed_of
from session_runtime.search.directory import directory_text, listing_key
from session_runtime.search.items import names_within, unmarked
from session_runtime.search.keywords import FULL_LAYER, KeywordRanker, Ranking
from session_runtime.search.loader import PROMPT_RULE
from session_runtime.search.query import (
    AFTER_NAMES,
    AROUND_NAMES,
    MAX_NAMES,
    Empty,
    Keywords,
    Select,
    called,
    parse,
    parted,
    spellings,
)
from session_runtime.search.rank import Scorer, most_bytes
from session_runtime.search.terms import analyse, cut_up, may_be_a_product, normalise, runs

LAYOUTS_KEPT, NEAREST_KEPT = 8, 64
LAYOUT_BYTES_PER_TOOL = 60
NEAREST = 3
SLOW_ABOVE = 2_000
"""From so many tools on, working out the statistics of a view takes longer than an event loop should wait."""

_AT_THE_ENDS = AROUND_NAMES + AFTER_NAMES
_LONGEST_LOADER = LONGEST_SPELLING * len(TOOL_SEARCH)


@dataclass(frozen=True, slots=True)
class Named:
    """A query that names tools: each spelling with the positions it stands for, none if unknown.

    ``truncated`` says that it goes on with names that were not looked up.
    """

    items: tuple[tuple[str, Positions], ...]
    truncated: bool = False

    @property
    def positions(self) -> Positions:
        """All tools named, each once, in the order of the query."""
        return tuple(dict.fromkeys(at for _, found in self.items for at in found))


Found = Empty | Named | Ranking


@dataclass(frozen=True, slots=True)
class Layout:
    """How the visible tools are shown: the names held back, and the text that lists them.

    ``prompt`` is what a model is told: the largest text of an ask, and one for all with the same tools.
    """

    deferred: tuple[str, ...]
    directory: str
    prompt: str


class SearchView:
    """The catalogue as one permission mask leaves it (TS-2, TS-14); shared by all asks with that mask.

    ``reopen`` gives the view of another mask.
    """

    def __init__(self, corpus: Corpus, mask: int, reopen: Callable[[int], "SearchView"]) -> None:
        size = len(corpus.names)
        bits = np.frombuffer(mask.to_bytes((size + 7) // 8, "little"), dtype=np.uint8)
        self._visible = np.unpackbits(bits, count=size, bitorder="little").astype(np.bool_)
        self._seen = self._visible.tobytes()  # for single positions
        self._corpus = corpus
        self._mask = mask
        self._reopen = reopen
        self._ranker: KeywordRanker | None = None
        self._nearest: Lru[str, tuple[str, ...]] = Lru(NEAREST_KEPT)
        self._layouts: Lru[tuple[tuple[str, ...], int], Layout] = Lru(LAYOUTS_KEPT)

    @property
    def slow(self) -> bool:
        """Whether the first ranking takes long, as it works out statistics of many tools."""
        return self._ranker is None and len(self._corpus.names) > SLOW_ABOVE

    def prepare(self) -> KeywordRanker:
        """Work out what the first ranking needs; any thread may, and two at once do no harm."""
        ranker = KeywordRanker(Scorer(self._corpus, self._visible))
        self._ranker = ranker
        return ranker

    @property
    def _keywords(self) -> KeywordRanker:
        return self._ranker or self.prepare()

    @property
    def most_bytes(self) -> int:
        """About how much memory it takes once everything was asked for and all its caches are full."""
        layouts = LAYOUT_BYTES_PER_TOOL * LAYOUTS_KEPT * self.count
        return layouts + most_bytes(self._corpus, self._visible)

    @property
    def count(self) -> int:
        """How many tools are visible."""
        return self._mask.bit_count()

    @cached_property
    def _listed(self) -> Positions:
        """The visible positions in the order of the directory."""
        seen = self._seen
        return tuple([at for at in self._corpus.tables.listing if seen[at]])

    def name(self, position: int) -> str:
        """The canonical name at a position."""
        return self._corpus.names[position]

    def position(self, name: str) -> int:
        """The position of a canonical name; raises KeyError for one that the catalogue lacks."""
        return self._corpus.tables.positions[name]

    def has(self, name: str) -> bool:
        """Whether a canonical name is visible."""
        return bool(self._exactly(name))

    def without(self, names: Iterable[str]) -> "SearchView":
        """The view in which these tools are invisible too."""
        mask = self._mask
        for name in names:
            for position in self._exactly(name):
                mask &= ~(1 << position)
        return self if mask == self._mask else self._reopen(mask)

    def resolve(self, name: str) -> Positions:
        """The tools that a name stands for: exact spelling, then any case, then wire name or alias.

        What models write before a name (``functions.``) is passed over if there is no such name.
        """
        return self._resolve(name) or (
            self._resolve(rest) if (rest := called(name)) != name else NONE
        )

    def _resolve(self, name: str) -> Positions:
        tables = self._corpus.tables
        if len(name) > LONGEST_TEXT or name.strip(_AT_THE_ENDS).count(" ") > tables.blanks:
            return NONE
        for spelling in spellings(name):
            if found := self._exactly(spelling) or self._spelt(fold(spelling)):
                return found
        return NONE

    def _resolve_item(self, name: str) -> Positions:
        """``resolve`` for a name that the mark of a list's item may stand before: ``1.web.search``."""
        return self.resolve(name) or (
            self.resolve(rest) if (rest := unmarked(name)) != name else NONE
        )

    def resolve_canonical(self, name: str) -> Positions:
        """The tools of that canonical name: exact spelling, then any case (TS-3)."""
        return self._exactly(name) or self._in_any_case(fold(name))

    def find(self, query: str) -> Found:
        """Read a query in the order of TS-7: ``select:``, complete names, keywords."""
        match parse(query):
            case Empty() as empty:
                return empty
            case Select() as select:
                return self._select(select)
            case Keywords() as keywords:
                return self._named(keywords) or self._rank(keywords)
            case unreachable:
                assert_never(unreachable)

    def rank(self, query: str, limit: int) -> list[tuple[str, float]]:
        """The best tools for a query with their scores, best first; none for an empty query.

        The whole part of a score is a layer: 3 if the tool is named in full, alone or in a phrase, 2 for
        another form of its name, 1 if its name holds every word; the fraction says how much of the query
        it meets.
        """
        match self.find(query):
            case Empty():
                return []
            case Named() as named:
                return [(self.name(at), float(FULL_LAYER)) for at in named.positions[:limit]]
            case Ranking() as ranking:
                return [(self.name(at), float(ranking.scores[at])) for at in ranking.top(limit)]
            case unreachable:
                assert_never(unreachable)

    def explain(self, query: str, limit: int) -> list[dict[str, object]]:
        """All of ``explained``."""
        return list(self.explained(query, limit))

    def explained(self, query: str, limit: int) -> Iterator[dict[str, object]]:
        """Like ``rank``, as ``{name, score, parts}``, one after the other; the parts add up to the score.

        A part says how much one ``word`` brought in one ``field``. The field ``layer`` is the whole
        part of the score, ``similar`` what a synonym, a translation or a correction of the word
        brought, ``phrase`` two words side by side, ``group`` the best match of the tool's group.
        """
        parsed = parse(query)
        keywords = parsed if isinstance(parsed, Keywords) else Keywords(query, ())
        for name, score in self.rank(query, limit):
            yield {"name": name, "score": score, "parts": self._parts(keywords, name, score)}

    def nearest(self, name: str) -> tuple[str, ...]:
        """A few visible names that a name nobody has may have meant, best first.

        A text too long for a name has none, so that long texts cost nothing.
        """
        if len(name) > MAX_NAME_LENGTH:
            return ()
        return self._nearest.get_or_make(name, self._find_nearest)

    def lists_slowly(self, base: tuple[str, ...], max_tokens: int) -> bool:
        """Whether ``layout`` takes longer than an event loop should wait, as it was never asked for."""
        return (base, max_tokens) not in self._layouts and self.count > SLOW_ABOVE

    def layout(self, base: tuple[str, ...], max_tokens: int) -> Layout:
        """What is held back if ``base`` is not, and the directory that lists it (TS-4); in any thread."""
        return self._layouts.get_or_make((base, max_tokens), self._lay_out)

    def _find_nearest(self, name: str) -> tuple[str, ...]:
        ranked = self.rank(name.replace("+", " "), NEAREST)
        words = _words_of(name)
        if near := [other for other, score in ranked if score >= 1 or words & _words_of(other)]:
            return tuple(near)
        tables = self._corpus.tables
        apart = chain.from_iterable(map(self._in_any_case, tables.near.near(fold(name))))
        return tuple(sorted(map(self.name, apart), key=listing_key)[:NEAREST])

    def _lay_out(self, key: tuple[tuple[str, ...], int]) -> Layout:
        base, max_tokens = key
        shown = frozenset(base)
        names, entries = self._corpus.names, self._corpus.tables.entries
        held_back = [at for at in self._listed if names[at] not in shown]
        directory = directory_text([entries[at] for at in held_back], max_tokens)
        deferred = tuple([names[at] for at in held_back])
        return Layout(deferred, directory, f"{PROMPT_RULE}\n\n{directory}")

    def _parts(self, keywords: Keywords, name: str, score: float) -> list[dict[str, object]]:
        layer: list[dict[str, object]] = []
        if score >= 1:
            layer = [{"word": keywords.text, "field": "layer", "score": float(int(score))}]
        if score == FULL_LAYER:
            return layer
        return layer + self._keywords.evidence(keywords, self._corpus.tables.positions[name])

    def _select(self, select: Select) -> Named:
        if found := self.resolve(select.whole):
            return Named(((select.whole, found),))
        if select.items and (written := self._resolve_all(select.names)):
            return Named(tuple(written), select.truncated)
        items: list[tuple[str, Positions]] = []
        for name in select.items or select.names:
            found = self._resolve_item(name)
            listed = None if found else self._resolve_all(parted(name))
            items += listed or [(name, found)]
        more = select.truncated or len(items) > MAX_NAMES
        return Named(tuple(items[:MAX_NAMES]), more)

    def _named(self, keywords: Keywords) -> Named | None:
        """The query as one complete name, or as nothing but complete names."""
        text = keywords.text
        if (found := self._resolve_item(text)) or is_loader(text):
            return Named(((text, found),))
        if not keywords.listed and (not keywords.compound or self._formed(text)):
            return None
        names = keywords.names()
        listed = self._resolve_all(names.names) or self._resolve_all(names.items)
        return Named(tuple(listed), names.truncated) if listed else None

    def _resolve_all(self, names: Iterable[str]) -> list[tuple[str, Positions]] | None:
        """Several names, if every one of them is known."""
        items: list[tuple[str, Positions]] = []
        for name in names:
            found = self._resolve_item(name)
            if not found and not is_loader(name):
                return None
            items.append((name, found))
        return items if len(items) > 1 else None

    def _rank(self, keywords: Keywords) -> Ranking:
        """Rank for keywords that are no name; the whole text or a part of it may be one, or a form of one."""
        texts, camel = keywords.spellings()
        named = [self.resolve(text) for text in texts]
        forms = [self._formed(text) for text, found in zip(texts, named, strict=True) if not found]
        for text in camel:
            spelt, cut_alike = self._in_camel_case(text)
            named.append(spelt)
            forms.append(cut_alike)
        named += [self.resolve(text) for text in keywords.quoted]
        named += [self._exactly(text) for text in keywords.wide]
        named += [self._spelt(name) for run in keywords.glued for name in self._within(run)]
        full, whole = dict.fromkeys(chain.from_iterable(named)), self._formed(keywords.text)
        formed = dict.fromkeys(chain(whole, *forms))
        if whole and full.keys().isdisjoint(whole):
            full, formed = {}, formed | full
        return self._keywords.rank(keywords, named=tuple(full), formed=tuple(formed))

    def _formed(self, text: str) -> Positions:
        """Tools whose name, last segment or alias has the same letters and digits in the same order."""
        if len(text) > LONGEST_TEXT:
            return NONE
        return self._visible_among(self._corpus.tables.compact.get(compact(text), NONE))

    def _within(self, run: str) -> Iterator[str]:
        return names_within(run.casefold(), lambda name: bool(self._spelt(name)))

    def _spelt(self, folded: str) -> Positions:
        """The tools with that name, wire name or alias in any case."""
        return self._in_any_case(folded) or self._visible_among(
            self._corpus.tables.other.get(folded, NONE)
        )

    def _in_camel_case(self, text: str) -> tuple[Positions, Positions]:
        """The tools that are called a word of a sentence, and those with a form that is cut as it is.

        A product's name that is cut alike (*GitHub*) means no tool if others speak of it, too.
        """
        tables = self._corpus.tables
        spelt: list[int] = []
        alike: list[int] = []
        cut, formed = cut_up(text), self._formed(text)
        product = (
            may_be_a_product(text)
            and deed_of((text,)) == NO_DEED
            and self._is_spoken_of(text, frozenset(formed))
        )
        for at in formed:
            name, aliases = tables.names[at], tables.aliases.get(at, ())
            forms = called_by(name, aliases)
            if text == name or text in aliases:
                spelt.append(at)
            elif product and any(form.replace(" ", "") == text for form in forms):
                continue
            elif any(cut_up(form) == cut for form in forms):
                alike.append(at)
        return tuple(spelt), tuple(alike)

    def _is_spoken_of(self, word: str, apart_from: frozenset[int]) -> bool:
        """Whether other visible tools hold a word."""
        number = self._corpus.lexicon.words.get(word.casefold())
        holders = NONE if number is None else self._corpus.holders.of(number).tolist()
        return any(self._seen[at] and at not in apart_from for at in holders)

    def _exactly(self, name: str) -> Positions:
        position = self._corpus.tables.positions.get(name)
        return NONE if position is None else self._visible_among((position,))

    def _in_any_case(self, folded: str) -> Positions:
        return self._visible_among(self._corpus.tables.folded.get(folded, NONE))

    def _visible_among(self, positions: Positions) -> Positions:
        return tuple([at for at in positions if self._seen[at]]) if positions else NONE


def is_loader(name: str) -> bool:
    """Whether a name means the search itself, with or without what models write before it."""
    if len(name) > _LONGEST_LOADER or (_is_bare(name) and TOOL_SEARCH not in name.lower()):
        return False
    return any(TOOL_SEARCH in map(fold, spellings(form)) for form in (name, called(name)))


def _is_bare(name: str) -> bool:
    """Whether a name is what it is written as: no other letters look the same, and none is escaped."""
    return name.isascii() and "&" not in name


def _words_of(name: str) -> set[str]:
    return {word for run in runs(normalise(name)) for word in analyse(run).words}
