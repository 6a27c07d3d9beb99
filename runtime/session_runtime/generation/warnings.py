"""What an operator configured that cannot work with the tools at hand (TS-3, TS-10, ASK-12)."""

from collections.abc import Mapping
from typing import Final

from session_runtime.config.keys import dotted
from session_runtime.config.models import ModelProfile
from session_runtime.config.settings import Settings, profiles
from session_runtime.generation.state import Profile
from session_runtime.registry.names import END, TOOL_SEARCH
from session_runtime.search import SearchIndex, SearchView, resolve_names

MOST_TOLD: Final = 20


def unreachable_names(settings: Settings, index: SearchIndex) -> list[str]:
    """Configured names that no tool has, each with the nearest one, and an end that cannot be reached."""
    everything, skills = index.own_view(), settings.skills
    warnings = []
    for key, names in (
        ("skills.tool_search_always_loaded", skills.tool_search_always_loaded),
        ("skills.prefetch_tools", skills.prefetch_tools),
    ):
        _, missing = resolve_names(everything, [name for name in names if name != TOOL_SEARCH])
        for name in missing[:MOST_TOLD]:
            near = everything.nearest(name)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            warnings.append(f"{key}: there is no tool {name!r}{hint}")
        if len(missing) > MOST_TOLD:
            warnings.append(f"{key}: {len(missing) - MOST_TOLD} more names that no tool has")
    if settings.ask.require_end and not _end_is_reachable(settings, everything):
        warnings.append(
            "ask.require_end is on, but the tool 'end' is not exposed from the first turn: "
            "add it to skills.tool_search_always_loaded"
        )
    return warnings


def crowded_profiles(settings: Settings, index: SearchIndex) -> list[str]:
    """Profiles that take fewer tools than somebody who may use all of them needs."""
    everything = index.own_view()
    pinned, _ = resolve_names(everything, settings.skills.tool_search_always_loaded)
    warnings = []
    for name, profile in profiles(settings).items():
        fault = _crowd(settings, profile, everything.count, len(pinned))
        if fault is not None:
            warnings.append(f"{dotted(('models', name, 'max_tools'))}: {fault}")
    return warnings


def taken_for_the_loader(opened: Mapping[str, Profile]) -> list[str]:
    """Tools that take the name of the loader, in the requests of some profiles or of all (TS-10)."""
    warnings = []
    for tool in sorted({tool for profile in opened.values() for tool in profile.clashes}):
        meeting = [name for name, profile in opened.items() if tool in profile.clashes]
        where = ""
        if len(meeting) < len(opened):
            where = f" in requests of the profile {' and '.join(map(repr, meeting))}"
        warnings.append(
            f"tool {tool!r} takes the name of {TOOL_SEARCH}{where}: who may use it is sent all tools"
            " at once; rename the tool"
        )
    return warnings


def _crowd(settings: Settings, profile: ModelProfile, tools: int, pinned: int) -> str | None:
    most = profile.max_tools
    if most is None or tools <= most:
        return None
    if not (settings.skills.tool_search_enabled and profile.supports_tool_search):
        return (
            f"without tool search the {tools} tools are sent in each request, of which this profile "
            f"takes {most}: asks of those who may use more fail"
        )
    if pinned + 1 >= most:
        return (
            f"tool_search and {pinned} tools of skills.tool_search_always_loaded leave no room for "
            f"any other tool in the {most} that this profile takes"
        )
    return None


def _end_is_reachable(settings: Settings, everything: SearchView) -> bool:
    if not settings.skills.tool_search_enabled:
        return everything.has(END)
    pinned, _ = resolve_names(everything, settings.skills.tool_search_always_loaded)
    return END in pinned
