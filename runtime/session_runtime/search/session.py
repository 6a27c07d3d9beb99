"""The tool search of one ask: what the model may call now, and what a search loads for its next turn.

How queries are read and ranked is decided in ``view``; how often the model may search, in
``governor``.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NotRequired, TypedDict, assert_never

from session_runtime.errors import ToolError
from session_runtime.registry.names import TOOL_SEARCH
from session_runtime.search.corpus import fold
from session_runtime.search.index import SearchIndex
from session_runtime.search.keywords import Ranking
from session_runtime.search.query import Empty
from session_runtime.search.view import Named, SearchView, is_loader

EMPTY_QUERY = (
    "tool_search needs a query: 'select:' and exact names from the directory, or a few keywords"
)
EMPTY_QUERY_CODE = "tool_search.empty_query"
HINTED_NAMES = 3
NAMED = 24
DIRECTORY_MAX_TOKENS = 8_000
_NO_NAMES: frozenset[str] = frozenset()


class SearchResult(TypedDict):
    """What a search answers (TS-5): exactly these five fields, and ``hint`` if configured."""

    loaded: list[str]
    already_loaded: list[str]
    not_found: list[str]
    truncated: bool
    total_deferred_tools: int
    hint: NotRequired[str]


class ToolSearchSession:
    """Which tools of a view are exposed in one ask; the set only grows (TS-6) at its end (TS-11).

    ``base`` are canonical names exposed from the start, ``hidden`` ones vanish altogether (PRE-1);
    names that are not visible in ``view`` are passed over. ``unavailable`` are sources that are down,
    named in hints. ``max_exposed`` is how many tools may be exposed at once (None: any number); searches
    load no more. It may be changed between turns. ``withdrawn`` gives names that nothing finds or loads
    at the moment (REL-9); what is exposed and the directory stay as they are.
    """

    def __init__(
        self,
        view: SearchView,
        *,
        base: Sequence[str],
        hidden: Collection[str] = (),
        max_results: int,
        directory_max_tokens: int,
        explain: bool = False,
        unavailable: Sequence[str] = (),
        max_exposed: int | None = None,
        withdrawn: Callable[[], frozenset[str]] = lambda: _NO_NAMES,
    ) -> None:
        self.max_exposed = max_exposed
        self._withdrawn = withdrawn
        self._view = view.without(hidden)
        self._base = tuple(name for name in dict.fromkeys(base) if self._view.has(name))
        self._max_results = max_results
        self._layout = self._view.layout(self._base, directory_max_tokens)
        self._explain = explain
        self._unavailable = tuple(unavailable)
        self._callable: list[str] = [*self._base, TOOL_SEARCH]
        self._loaded: dict[str, None] = {}
        self._arriving: list[str] = []

    @property
    def exposed(self) -> tuple[str, ...]:
        """What may be called in this turn: base, ``tool_search``, loaded tools in load order."""
        return tuple(self._callable)

    @property
    def loaded(self) -> tuple[str, ...]:
        """Everything that was loaded, in load order, callable yet or not."""
        return tuple(self._loaded)

    @property
    def deferred(self) -> tuple[str, ...]:
        """The names held back at the start, in the order of the directory."""
        return self._layout.deferred

    @property
    def room(self) -> int | None:
        """How many more tools can be loaded, as a request holds no more; None: any number."""
        taken = len(self._callable) + len(self._arriving)
        return None if self.max_exposed is None else max(0, self.max_exposed - taken)

    @property
    def full(self) -> bool:
        """Whether no further tool can be loaded."""
        return self.room == 0

    @property
    def total_deferred(self) -> int:
        """How many tools were held back at the start."""
        return len(self._layout.deferred)

    @property
    def directory(self) -> str:
        """The text that lists the names held back at the start; the same all ask long (TS-4)."""
        return self._layout.directory

    @property
    def prompt(self) -> str:
        """The directory below the rule how to use it, as a model is told it."""
        return self._layout.prompt

    @property
    def withdrawn(self) -> frozenset[str]:
        """What nothing finds or loads at the moment."""
        return self._withdrawn()

    def slow_view(self) -> SearchView | None:
        """The view of the next search if its first ranking takes long; ``prepare`` it in a thread."""
        view = self._view.without(self.withdrawn)
        return view if view.slow else None

    def next_turn(self) -> tuple[str, ...]:
        """Make callable what was loaded in the turn before; returns ``exposed``."""
        self._callable += self._arriving
        self._arriving = []
        return self.exposed

    def can_load(self, name: str) -> bool:
        """Whether a tool can be called already, or could be from the next turn on."""
        if name in self.withdrawn:
            return False
        has = name in self._base or name in self._loaded
        return has or (self._view.has(name) and not self.full)

    def would_load(self, name: str) -> bool:
        """Whether ``load`` is possible and changes something."""
        return name not in self._base and name not in self._loaded and self.can_load(name)

    def load(self, name: str) -> bool:
        """Load a tool that no search asked for; tells whether that was possible and new."""
        if not self.would_load(name):
            return False
        self._loaded[name] = None
        self._arriving.append(name)
        return True

    def search(self, query: str, max_results: int | None = None) -> SearchResult:
        """Load the tools that a query finds (TS-7); raises ToolError for an empty query.

        ``max_results`` can only lower the configured number; below 1 counts as 1.
        """
        cap = self.cap(max_results)
        view = self._view.without(self.withdrawn)
        match view.find(query):
            case Empty():
                raise ToolError(EMPTY_QUERY, code=EMPTY_QUERY_CODE)
            case Named() as named:
                result = self._load_named(named, cap)
            case Ranking() as ranking:
                result = self._load_ranked(query, ranking, cap)
            case unreachable:
                assert_never(unreachable)
        if self._explain:
            result["hint"] = self._hint(view, result["not_found"])
        return result

    def callable_now(self) -> str:
        """A sentence that names what may be called in this turn; nothing unless hints are wanted."""
        if not self._explain:
            return ""
        names = [name for name in self.exposed if name not in self.withdrawn]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return f"Can be called now: {', '.join(names[:NAMED])}{more}."

    def cap(self, max_results: int | None) -> int:
        """How many tools a search with this argument may load."""
        wanted = self._max_results if max_results is None else max_results
        return max(1, min(wanted, self._max_results))

    def _load_named(self, named: Named, cap: int) -> SearchResult:
        result = self._empty_result()
        result["truncated"] = named.truncated
        missing: dict[str, str] = {}
        for spelling, positions in named.items:
            names = [self._view.name(position) for position in positions]
            if not names and is_loader(spelling):
                names = [TOOL_SEARCH]
            if not names:
                missing.setdefault(fold(spelling), spelling)
            for name in names:
                self._take(name, cap, result)
        result["not_found"] = list(missing.values())
        return result

    def _load_ranked(self, query: str, ranking: Ranking, cap: int) -> SearchResult:
        """Let the best ``cap`` deferred matches through, loaded before or not.

        Base tools that rank among them take no place, so that they hide nothing.
        """
        result = self._empty_result()
        room = cap
        for position in ranking.top(cap + len(self._base)):
            if not room:
                break
            name = self._view.name(position)
            room -= name not in self._base
            self._take(name, cap, result)
        in_base = sum(ranking.scores[self._view.position(name)] > 0 for name in self._base)
        result["truncated"] = result["truncated"] or ranking.count - int(in_base) > cap
        if not ranking.count:
            result["not_found"] = [query.strip()]
        return result

    def _take(self, name: str, cap: int, result: SearchResult) -> None:
        """Put a match where it belongs: loaded now, loaded before, or cut off."""
        if name in result["loaded"] or name in result["already_loaded"]:
            return
        if name == TOOL_SEARCH or name in self._base or name in self._loaded:
            result["already_loaded"].append(name)
        elif len(result["loaded"]) < cap and not self.full:
            result["loaded"].append(name)
            self._loaded[name] = None
            self._arriving.append(name)
        else:
            result["truncated"] = True

    def _empty_result(self) -> SearchResult:
        return {
            "loaded": [],
            "already_loaded": [],
            "not_found": [],
            "truncated": False,
            "total_deferred_tools": self.total_deferred,
        }

    def _hint(self, view: SearchView, not_found: Sequence[str]) -> str:
        asked = not_found[:HINTED_NAMES]
        near = (name for text in asked for name in view.nearest(text))
        names = list(dict.fromkeys(near))[:HINTED_NAMES]
        sentences = []
        if names:
            sentences.append(f"Nearest names: {', '.join(names)}.")
        if not_found and self._unavailable:
            sentences.append(f"Not available at the moment: {', '.join(self._unavailable)}.")
        return " ".join(sentences)


def open_session(
    index: SearchIndex,
    always_loaded: Sequence[str] = (),
    max_results: int = 5,
    permitted: Collection[str] | None = None,
) -> ToolSearchSession:
    """A session on an index without a daemon (INT-6); ``permitted`` None permits every tool."""
    mask = index.full_mask if permitted is None else index.mask(permitted)
    view = index.view(mask)
    base, _ = resolve_names(view, always_loaded)
    return ToolSearchSession(
        view,
        base=base,
        max_results=max_results,
        directory_max_tokens=DIRECTORY_MAX_TOKENS,
    )


def resolve_names(
    view: SearchView, names: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of a configured list (TS-3): those that exist, and those that are missing.

    A name is tried in its exact spelling, then in any case; the order of the list is kept.
    """
    resolved: dict[str, None] = {}
    missing: dict[str, None] = {}
    for name in names:
        found = view.resolve_canonical(name)
        resolved.update(dict.fromkeys(map(view.name, found)))
        if not found:
            missing[name] = None
    return tuple(resolved), tuple(missing)
