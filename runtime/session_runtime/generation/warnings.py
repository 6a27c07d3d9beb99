"""What an operator configured that can have no effect on the tools at hand (TS-3)."""

from session_runtime.config.settings import Settings
from session_runtime.registry.names import END, TOOL_SEARCH
from session_runtime.search import SearchIndex, SearchView, resolve_names


def unreachable_names(settings: Settings, index: SearchIndex) -> list[str]:
    """Configured names that no tool has, each with the nearest one, and an end that cannot be reached."""
    everything, skills = index.view(index.full_mask), settings.skills
    warnings = []
    for key, names in (
        ("skills.tool_search_always_loaded", skills.tool_search_always_loaded),
        ("skills.prefetch_tools", skills.prefetch_tools),
    ):
        _, missing = resolve_names(everything, [name for name in names if name != TOOL_SEARCH])
        for name, near in missing.items():
            hint = f"; did you mean {near!r}?" if near else ""
            warnings.append(f"{key}: there is no tool {name!r}{hint}")
    if settings.ask.require_end and not _end_is_reachable(settings, everything):
        warnings.append(
            "ask.require_end is on, but the tool 'end' is not exposed from the first turn: "
            "add it to skills.tool_search_always_loaded"
        )
    return warnings


def _end_is_reachable(settings: Settings, everything: SearchView) -> bool:
    if not settings.skills.tool_search_enabled:
        return everything.has(END)
    pinned, _ = resolve_names(everything, settings.skills.tool_search_always_loaded)
    return END in pinned
