"""What the model may see and call in an ask: the full permitted list, or tool search over it."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Literal

from session_runtime.errors import PermanentError
from session_runtime.generation import Generation, Permitted, Profile
from session_runtime.registry.names import RESULTS_READ, TOOL_SEARCH, WireNames
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import SearchGovernor, SearchView, ToolSearchSession, resolve_names
from session_runtime.threads import aside

_log = logging.getLogger(__name__)

Rule = Literal["off", "collision", "unsupported", "nothing_deferred", "threshold", "deferred"]
Revoked = Callable[[], frozenset[str]]
_FEWER_PINNED = "shorten skills.tool_search_always_loaded"
_WAYS_OUT: Mapping[Rule, str] = MappingProxyType(
    {  # "threshold" does not apply to a list that is too long
        "off": "turn on tool search with skills.tool_search_enabled",
        "collision": "rename the tool that takes the name of tool_search, so that tool search can work",
        "unsupported": "use a profile with supports_tool_search, or permit fewer tools",
        "nothing_deferred": _FEWER_PINNED,
        "deferred": _FEWER_PINNED,
    }
)


@dataclass(frozen=True, slots=True)
class Turn:
    """The tools of one request in wire order, and the same by canonical name (TS-13).

    ``tokens`` estimates what sending their schemas costs.
    """

    tools: tuple[ToolSpec, ...]
    by_name: Mapping[str, ToolSpec]
    tokens: int


class Exposure:
    """One ask's view of the catalogue; ``rule`` says why tool search is active or not (TS-10).

    ``profile`` is the one that answers the ask, until another takes over (ASK-9). ``revoked`` gives the
    tools that an operator has taken away by now (REL-9).
    """

    def __init__(
        self,
        generation: Generation,
        profile: Profile,
        rule: Rule,
        permitted: Permitted,
        hidden: frozenset[str],
        session: ToolSearchSession | None,
        revoked: Revoked,
    ) -> None:
        self.rule = rule
        self.session = session
        self.profile = profile
        self.governor = (
            SearchGovernor(session, generation.settings.skills.tool_search_max_calls)
            if session is not None
            else None
        )
        self._generation = generation
        self._permitted = permitted
        self._hidden = hidden
        self._revoked = revoked
        self._names: dict[str, WireNames] = {}

    def names_for(self, profile: Profile) -> WireNames:
        """The wire names of what the ask may know, for one profile; nothing else has one (TS-2)."""
        separator = profile.settings.name_separator
        if separator not in self._names:
            self._names[separator] = profile.names.only(self._permitted.names, self._hidden)
        return self._names[separator]

    def obstacle(self, profile: Profile, turn: Turn) -> str | None:
        """Why ``profile`` cannot be asked this turn, for operators to read; None if it can."""
        if self.session is not None and not profile.settings.supports_tool_search:
            return "it does not support tool search, which this ask uses"
        if self.session is not None and (clash := _loader_clash(profile, self._permitted)):
            return f"with its name_separator the tool {clash!r} takes the name of tool_search"
        fault = _too_many(profile, len(turn.tools))
        return None if fault is None else f"it {fault}"

    async def prepare_search(self) -> None:
        """Work out what the next search needs, aside if that takes long."""
        view = None if self.session is None else self.session.slow_view()
        if view is not None:
            await aside("preparing tool search", view.prepare)

    def hand_over(self, profile: Profile) -> None:
        """From now on ``profile`` answers the ask; searches load no more than it takes."""
        self.profile = profile
        if self.session is not None:
            self.session.max_exposed = profile.settings.max_tools

    @property
    def full_list_tokens(self) -> int:
        """What one request with the whole permitted list would cost in schemas, in tokens."""
        tokens = self._generation.schema_tokens
        return self._permitted.tokens - sum(tokens[name] for name in self._hidden)

    @property
    def loaded(self) -> tuple[str, ...]:
        """Names loaded so far, in load order."""
        return self.session.loaded if self.session is not None else ()

    @property
    def reads_results(self) -> bool:
        """Whether results.read can be called, at the latest from the next turn on (ASK-8b)."""
        if RESULTS_READ in self._hidden or not may_read_results(self._generation, self._permitted):
            return False
        if RESULTS_READ in self.revoked:
            return False
        return self.session is None or self.session.can_load(RESULTS_READ)

    @property
    def revoked(self) -> frozenset[str]:
        """Tools that an operator has taken away, perhaps since the ask began (REL-9)."""
        return self._revoked()

    @property
    def taken_away(self) -> tuple[str, ...]:
        """What of the tools of this ask an operator has taken away since it began."""
        return tuple(sorted(self.revoked & self._permitted.names))

    def permitted(self, name: str) -> ToolSpec | None:
        """The tool of that name if this ask may know it, loaded or not; None if it may not."""
        if name not in self._permitted.names or name in self.revoked:
            return None
        return self._generation.catalog.lookup(name)

    def load_results_read(self) -> bool:
        """Make results.read callable from the next turn on; False if that changes nothing."""
        return self.session is not None and self.session.load(RESULTS_READ)

    def autoload(self, name: str) -> bool:
        """Load a tool that was called too early, if that is wanted; False if that changes nothing (TS-6)."""
        wanted = self._generation.settings.skills.tool_search_autoload
        return wanted and self.session is not None and self.session.load(name)

    @property
    def loads_no_more(self) -> str | None:
        """Why no search loads a tool any more, in words for the model; None if one can."""
        return None if self.governor is None else self.governor.ended

    @property
    def autoloads(self) -> bool:
        """Whether a call of a tool that is not loaded loads it."""
        return self._generation.settings.skills.tool_search_autoload

    def next_turn(self) -> Turn:
        """What goes to the model now; makes callable what was loaded in the turn before (TS-6)."""
        if self.session is None:
            return self._whole
        return self._turn([self._spec(name) for name in self.session.next_turn()])

    @cached_property
    def _whole(self) -> Turn:
        return self._turn(spec for spec in self._permitted.tools if spec.name not in self._hidden)

    def _turn(self, specs: Iterable[ToolSpec]) -> Turn:
        tools, tokens = tuple(specs), self._generation.schema_tokens
        turn = Turn(
            tools,
            MappingProxyType({spec.name: spec for spec in tools}),
            sum(tokens[spec.name] for spec in tools),
        )
        self._check_wire(turn)
        return turn

    def _spec(self, name: str) -> ToolSpec:
        if name == TOOL_SEARCH:
            return self._generation.loader.spec
        return self._generation.catalog.lookup(name)

    def _check_wire(self, turn: Turn) -> None:
        """Refuse to send a request that breaks TS-13, whatever the cause."""
        withholding = self.session is not None
        if len(turn.by_name) != len(turn.tools):
            raise PermanentError("a tool would be sent twice", code="internal.exposure")
        if withholding and self._generation.loader.spec not in turn.tools:
            raise PermanentError(
                "tools are withheld but tool_search is not sent", code="internal.exposure"
            )
        if fault := _too_many(self.profile, len(turn.tools)):
            raise PermanentError(
                f"model profile {self.profile.name!r} {fault}: {_WAYS_OUT[self.rule]}",
                code="model.too_many_tools",
            )


def may_read_results(generation: Generation, permitted: Permitted) -> bool:
    """Whether the bundled results.read is permitted; another tool of that name is not known to read."""
    if RESULTS_READ not in permitted.names:
        return False
    return generation.catalog.lookup(RESULTS_READ).origin == "bundled"


def whole_exposure(generation: Generation, profile: Profile, mask: int) -> Exposure:
    """The view of a sub-agent: all that it may use, without search (TS-1)."""
    permitted = generation.permitted.get(mask)
    revoked = _revoked_in(generation)
    return Exposure(generation, profile, "off", permitted, frozenset(), None, revoked)


def _revoked_in(generation: Generation) -> Revoked:
    return lambda: generation.policy.revoked.names


async def prepare_directory(
    generation: Generation, profile: Profile, mask: int, prefetched: Collection[str]
) -> None:
    """Lay out, aside if that takes long, the directory that ``open_exposure`` shows."""
    skills = generation.settings.skills
    if not (skills.tool_search_enabled and profile.settings.supports_tool_search):
        return
    hidden = _hidden(generation, prefetched)
    view = generation.index.view(mask)
    base, most = _base(generation, view, hidden), skills.tool_search_directory_max_tokens
    shown = view.without(hidden)
    if shown.lists_slowly(base, most):
        await aside("listing tools", partial(shown.layout, base, most))


def _hidden(generation: Generation, prefetched: Collection[str]) -> frozenset[str]:
    return frozenset(prefetched) if generation.settings.skills.prefetch_tools_hide else frozenset()


def _base(generation: Generation, view: SearchView, hidden: frozenset[str]) -> tuple[str, ...]:
    """The tools that are exposed from the start."""
    skills = generation.settings.skills
    wanted = (*skills.tool_search_always_loaded, *skills.prefetch_tools)
    base, _ = resolve_names(view, [name for name in wanted if name != TOOL_SEARCH])
    return tuple(name for name in base if name not in hidden)


def open_exposure(
    generation: Generation,
    profile: Profile,
    mask: int,
    prefetched: Collection[str],
    unavailable: Sequence[str] = (),
    revoked: Revoked | None = None,
) -> Exposure:
    """Open the view of one ask on the permitted tools ``mask``.

    ``prefetched`` are tools whose prefetch succeeded; hidden ones among them vanish from every list,
    index and count (PRE-1), with tool search or without it (PRE-2). ``unavailable`` servers are named in
    the hints of searches that miss something. ``revoked`` gives what an operator has taken away, for who
    does not want to know what is now.
    """
    hidden = _hidden(generation, prefetched)
    permitted = generation.permitted.get(mask)
    view = generation.index.view(mask)
    revoked = revoked or _revoked_in(generation)
    open_session = partial(_open_session, generation, profile, view, hidden, unavailable, revoked)
    rule, session = _decide(generation, profile, permitted, hidden, open_session)
    return Exposure(generation, profile, rule, permitted, hidden, session, revoked)


def _decide(
    generation: Generation,
    profile: Profile,
    permitted: Permitted,
    hidden: frozenset[str],
    open_session: Callable[[], ToolSearchSession],
) -> tuple[Rule, ToolSearchSession | None]:
    """Which rule of TS-10 applies, in this order; only the last one opens a session."""
    skills = generation.settings.skills
    if not skills.tool_search_enabled:
        return "off", None
    if not profile.settings.supports_tool_search:
        return "unsupported", None
    if clash := _loader_clash(profile, permitted):
        _log.error(
            "tool %r takes the name of tool_search: this ask gets the full list; rename the tool",
            clash,
        )
        return "collision", None
    session = open_session()
    if not session.total_deferred:
        return "nothing_deferred", None
    whole = len(permitted.names - hidden)
    if _below_threshold(generation, profile, session) and not _too_many(profile, whole):
        return "threshold", None
    return "deferred", session


def _loader_clash(profile: Profile, permitted: Permitted) -> str | None:
    return next((name for name in profile.clashes if name in permitted.names), None)


def _too_many(profile: Profile, tools: int) -> str | None:
    """What is wrong with so many tools in a request, in words that follow the profile; None if fine."""
    most = profile.settings.max_tools
    if most is None or tools <= most:
        return None
    return f"takes at most {most} tools (max_tools), and this request has {tools}"


def _open_session(
    generation: Generation,
    profile: Profile,
    view: SearchView,
    hidden: frozenset[str],
    unavailable: Sequence[str],
    revoked: Revoked,
) -> ToolSearchSession:
    skills = generation.settings.skills
    return ToolSearchSession(
        view,
        base=_base(generation, view, hidden),
        hidden=hidden,
        max_results=skills.tool_search_max_results,
        directory_max_tokens=skills.tool_search_directory_max_tokens,
        explain=skills.tool_search_explain,
        unavailable=unavailable,
        max_exposed=profile.settings.max_tools,
        withdrawn=revoked,
    )


def _below_threshold(generation: Generation, profile: Profile, session: ToolSearchSession) -> bool:
    percent = generation.settings.skills.tool_search_threshold_percent
    window = profile.settings.context_window
    if not percent or not window:
        return False
    deferred = sum(generation.schema_tokens[name] for name in session.deferred)
    return deferred * 100 < percent * window
