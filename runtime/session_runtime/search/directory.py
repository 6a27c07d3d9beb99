"""The list of held-back names that stands in the prompt (TS-4): escaped, sorted, within a budget."""

import html
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from session_runtime.search.fields import split_name

CHARS_PER_TOKEN = 4
MAX_NAME_CHARS = 128
SUMMARIES_KEPT = 2_048
_NOT_LISTED = " more tools, not listed: search for them)"
_OPEN, _CLOSE = "<available_deferred_tools>", "</available_deferred_tools>"


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One line of the directory: a tool of a ``group`` ('' for none), or several ``tools`` of it.

    ``size`` are its characters with the line's end.
    """

    line: str
    group: str
    size: int
    tools: int


def listing_key(name: str) -> tuple[str, str]:
    """By what the names of the directory are sorted."""
    return name.casefold(), name


def tool_entry(name: str, wire_name: str) -> Entry:
    """The line of one tool: its name, or its wire name if the name would spoil the list."""
    fits = len(name) <= MAX_NAME_CHARS and name.isprintable() and name.strip() == name != ""
    return _entry(html.escape(name, quote=False) if fits else wire_name, split_name(name)[0])


def _entry(line: str, group: str, tools: int = 1) -> Entry:
    return Entry(line, group, len(line) + 1, tools)


def directory_text(entries: Sequence[Entry], max_tokens: int) -> str:
    """The whole block for entries that are already in order.

    If it would have more than ``max_tokens``, groups of several tools become one line
    ``group.* (12 tools)``, the largest first; if that is not enough, the last lines give way to the
    number of their tools.
    """
    room = max_tokens * CHARS_PER_TOKEN - len(_OPEN) - len(_CLOSE) - 1
    if _size(entries) > room:
        entries = _cut(_collapsed(entries, room), room)
    return "\n".join((_OPEN, *(entry.line for entry in entries), _CLOSE))


def _size(entries: Sequence[Entry]) -> int:
    return sum([entry.size for entry in entries])


def _collapsed(entries: Sequence[Entry], room: int) -> list[Entry]:
    """The entries with as many groups collapsed as the room demands; each stands where it began."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for entry in entries:
        sizes[entry.group].append(entry.size)
    sizes.pop("", None)
    excess = _size(entries) - room
    summaries: dict[str, Entry] = {}
    for group in sorted(sizes, key=lambda group: (-len(sizes[group]), group)):
        if excess <= 0:
            break
        summary = _summary(group, len(sizes[group]))
        saved = sum(sizes[group]) - summary.size
        if saved > 0:
            summaries[group] = summary
            excess -= saved
    return list(dict.fromkeys([summaries.get(entry.group, entry) for entry in entries]))


@lru_cache(maxsize=SUMMARIES_KEPT)
def _summary(group: str, tools: int) -> Entry:
    """A group as the beginning that its names share."""
    shown = group[:MAX_NAME_CHARS]
    if not shown.isprintable():
        shown = "".join(char if char.isprintable() else "_" for char in shown)
    return _entry(f"{html.escape(shown, quote=False)}* ({tools} tools)", group, tools)


def _cut(entries: list[Entry], room: int) -> list[Entry]:
    """The first entries that fit, and how many tools the others stand for."""
    size = _size(entries)
    if size <= room or not entries:
        return entries
    kept = list(entries)
    hidden = 0
    while kept and size + _more_size(hidden) > room:
        last = kept.pop()
        hidden += last.tools
        size -= last.size
    return [*kept, _more(hidden)]


def _more(tools: int) -> Entry:
    return _entry(f"({tools}{_NOT_LISTED}", "", tools)


def _more_size(tools: int) -> int:
    """The size of ``_more``, which is asked for as often as an entry gives way."""
    return len(_NOT_LISTED) + len(str(tools)) + 2
