"""What is evaluated, and how a case is put to it: as a search of an ask's first turn."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from session_runtime.config.settings import Settings
from session_runtime.config.tools import SkillsSettings
from session_runtime.errors import ToolError
from session_runtime.evaluation.cases import Case
from session_runtime.evaluation.outcome import DEPTH, Outcome
from session_runtime.generation import Generation, field_weights, schema_tokens
from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import SearchView, ToolSearchSession, build_index, resolve_names
from session_runtime.types import Identity

_SEPARATOR: Final = "__"
_WARM_UP: Final = "warm up"


@dataclass(frozen=True, slots=True)
class Subject:
    """The tools that may be found, and the settings that count; nothing of it is open.

    ``tokens`` is by name what a tool's schema costs in a request.
    """

    view: SearchView
    skills: SkillsSettings
    tokens: Mapping[str, int]

    @classmethod
    def of_generation(cls, generation: Generation, identity: Identity | None) -> "Subject":
        """What a configuration made: all its tools, or those that ``identity`` may use."""
        index, policy = generation.index, generation.policy
        mask = index.full_mask if identity is None else policy.mask(identity)
        return cls(index.view(mask), generation.settings.skills, generation.schema_tokens)

    @classmethod
    def of_tools(cls, specs: Sequence[ToolSpec], settings: Settings) -> "Subject":
        """Tools with distinct names from elsewhere, under the weights and limits of ``settings``."""
        names = build_wire_names([spec.name for spec in specs], _SEPARATOR)
        index = build_index(specs, names, field_weights(settings))
        tokens = {spec.name: schema_tokens(spec) for spec in specs}
        return cls(index.view(index.full_mask), settings.skills, tokens)

    def unknown(self, cases: Iterable[Case]) -> list[tuple[Case, str]]:
        """The wanted names that no tool has, so that they cannot be found."""
        return [(case, name) for case in cases for name in case.gold if not self.view.has(name)]


def evaluate(
    subject: Subject, cases: Iterable[Case], clock: Callable[[], float] = time.thread_time
) -> tuple[Outcome, ...]:
    """Put every case as it stands; ``clock`` tells processor time in seconds.

    What is made once per catalogue is made before the first case and not counted.
    """
    subject.view.rank(_WARM_UP, DEPTH)
    wanted = subject.skills.tool_search_always_loaded, subject.skills.prefetch_tools
    base, _ = resolve_names(subject.view, [name for names in wanted for name in names])
    return tuple(_outcome(subject, case, base, clock) for case in cases)


def _outcome(
    subject: Subject, case: Case, base: Sequence[str], clock: Callable[[], float]
) -> Outcome:
    start = clock()
    ranked = subject.view.rank(case.query, DEPTH)
    seconds = clock() - start
    loaded = _loaded(subject, case.query, base)
    return Outcome(
        case,
        tuple(name for name, _ in ranked),
        loaded,
        sum(subject.tokens[name] for name in loaded),
        seconds,
    )


def _loaded(subject: Subject, query: str, base: Sequence[str]) -> tuple[str, ...]:
    """What one search would load; a query without a word is refused and loads nothing."""
    session = ToolSearchSession(
        subject.view,
        base=base,
        max_results=subject.skills.tool_search_max_results,
        directory_max_tokens=subject.skills.tool_search_directory_max_tokens,
    )
    try:
        return tuple(session.search(query)["loaded"])
    except ToolError:
        return ()
