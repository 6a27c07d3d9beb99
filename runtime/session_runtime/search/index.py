"""The search index of a generation: built once, read by every ask through views (TS-14)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from session_runtime.lru import Lru
from session_runtime.registry.names import WireNames, build_wire_names
from session_runtime.registry.spec import ToolSpec
from session_runtime.search.build import build_corpus
from session_runtime.search.corpus import Corpus
from session_runtime.search.fields import FieldWeights
from session_runtime.search.view import SearchView
from session_runtime.types import NOTHING

VIEWS_BYTES, LEAST_VIEWS = 64_000_000, 2
"""Views are kept up to so much memory, or so many with every tool if these take more."""


class SearchIndex:
    """All tools of a generation; bit ``i`` of a mask stands for the ``i``-th tool of ``names``."""

    def __init__(self, corpus: Corpus, views_bytes: int = VIEWS_BYTES) -> None:
        self.corpus = corpus
        self.full_mask = (1 << len(corpus.names)) - 1
        everything = SearchView(corpus, self.full_mask, self.view).most_bytes
        self._views: Lru[int, SearchView] = Lru(
            max(views_bytes, LEAST_VIEWS * everything), lambda _, view: view.most_bytes
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical names by position."""
        return self.corpus.names

    def mask(self, names: Collection[str]) -> int:
        """The mask of some tools; unknown names are passed over."""
        positions = self.corpus.tables.positions
        mask = 0
        for name in names:
            if (position := positions.get(name)) is not None:
                mask |= 1 << position
        return mask

    def view(self, mask: int) -> SearchView:
        """What is visible through a mask; views that were used last are kept with their statistics."""
        return self._views.get_or_make(mask & self.full_mask, self._open)

    def own_view(self) -> SearchView:
        """What is visible without a mask, kept nowhere: for another thread than that of the asks."""
        return self._open(self.full_mask)

    def rank(self, query: str, limit: int) -> list[tuple[str, float]]:
        """The best of all tools for a query with their scores, best first (INT-6)."""
        return self.view(self.full_mask).rank(query, limit)

    def _open(self, mask: int) -> SearchView:
        return SearchView(self.corpus, mask, self.view)


def build_index(
    specs: Sequence[ToolSpec],
    names: WireNames,
    weights: FieldWeights,
    previous: SearchIndex | None = None,
    synonyms: tuple[str, ...] = (),
) -> SearchIndex:
    """Index tools with distinct names; what ``previous`` holds unchanged is not read again.

    ``synonyms`` are groups of words that mean the same, with blanks between them, beside those that come
    along.
    """
    corpus = previous.corpus if previous is not None else None
    return SearchIndex(build_corpus(specs, names, weights, corpus, synonyms))


def index_tools(tools: Iterable[Mapping[str, Any]]) -> SearchIndex:
    """Index plain definitions ``{name, description, parameters}``, for tests and evaluation (INT-6).

    Rejects none: names are kept as given, a missing one is made up, the first of several equal ones
    counts, anything else of the wrong type is passed over.
    """
    specs: dict[str, ToolSpec] = {}
    for number, tool in enumerate(tools):
        spec = _tolerant_spec(tool if isinstance(tool, Mapping) else NOTHING, number)
        specs.setdefault(spec.name, spec)
    return build_index(tuple(specs.values()), build_wire_names(specs, "__"), FieldWeights())


def _tolerant_spec(tool: Mapping[str, Any], number: int) -> ToolSpec:
    name, description, parameters = map(tool.get, ("name", "description", "parameters"))
    name = name if isinstance(name, str) and name else f"unnamed_{number}"
    return ToolSpec(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=parameters if isinstance(parameters, Mapping) else NOTHING,
        origin="virtual",
        source_id="",
        native_name=name,
        digest="",
        aliases=_strings(tool.get("aliases")),
        search_hints=_strings(tool.get("search_hints")),
        examples=_strings(tool.get("examples")),
    )


def _strings(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else ()
    return tuple(item for item in items if isinstance(item, str))
