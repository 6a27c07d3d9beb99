"""Makes tools of all that is registered, importing nothing (REG-1, REG-4, REG-6).

What is registered is found in ``folders``, ``entries`` and ``plugins``; when code of it runs is decided in
``loader``.
"""

import hashlib
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from session_runtime.config.handlers import HandlersSettings
from session_runtime.config.keys import nearest
from session_runtime.errors import ConfigError, PermanentError, Problem
from session_runtime.local import agents, entries, folders, plugins
from session_runtime.local.candidate import MANIFEST, Candidate, Listing, Touched
from session_runtime.local.code import CODE
from session_runtime.local.tool import LocalTool, make_tool, never_worked
from session_runtime.registry.catalog import Quarantined
from session_runtime.registry.patterns import Patterns
from session_runtime.registry.schema import ArgumentCheck
from session_runtime.registry.spec import Origin

_MAX_REASONS: Final = 3


@dataclass(frozen=True, slots=True)
class Scan:
    """What is registered, sorted by name; two scans of one digest hold the same tools.

    ``found`` is everything that could be a tool, ``handlers`` where it was looked for.
    """

    tools: tuple[LocalTool, ...]
    quarantined: tuple[Quarantined, ...]
    warnings: tuple[str, ...]
    digest: str
    found: tuple[Candidate, ...] = ()
    handlers: HandlersSettings = field(default_factory=HandlersSettings)

    @property
    def checks(self) -> Mapping[str, ArgumentCheck]:
        """The checks of all tools by the digest of their tool, for ``build_catalog``."""
        return {tool.spec.digest: tool.check for tool in self.tools}


def scan(
    handlers: HandlersSettings,
    bundled: Path | None,
    idle: Sequence[str] = (),
    before: Scan | None = None,
    touched: Touched = None,
) -> Scan:
    """Read the tools that ``handlers`` registers, and those that come with the package, in ``bundled``.

    ``idle`` are patterns of bundled tools that nothing was set up for. What did not change since the
    scan ``before`` is not read again; with ``touched``, only these paths are looked at. A tool that
    cannot be used is quarantined alone; if it could ``before``, that form stays (REL-7). Two of one name
    are both quarantined, but any tool replaces a bundled one, with a warning. Raises ConfigError for what
    is named in the configuration and not there at all, and for an item of a list that holds no usable
    tool.
    """
    if before is None or before.handlers != handlers:
        touched = None
    everything = _find_all(handlers, bundled, before, touched)
    left_out = Patterns(idle if handlers.bundled else ["*"])
    found = [each for each in everything if not each.shipped or _whole_name(each) not in left_out]
    only, never = Patterns(handlers.enabled or ["*"]), Patterns(handlers.disabled)
    wanted = [
        each
        for each in found
        if _whole_name(each) in only and each.name not in never and _whole_name(each) not in never
    ]
    chosen, clashing, replacements = _settle_names(wanted)
    chosen = _without_strangers(chosen)
    read = _read_all(chosen, before, touched)
    tools = tuple(each.tool for each in read if each.tool is not None)
    refused = [*clashing, *((each.candidate, each.fault) for each in read if each.fault)]
    useful = {each.candidate.listing for each in read if each.tool is not None}
    wanted_names = {each.name for each in wanted}
    useful |= {each.listing for each in found if each.name not in wanted_names}
    _refuse_useless(_listings(handlers), useful, refused)
    return Scan(
        tools,
        tuple(sorted((bad for _, bad in refused), key=lambda bad: (bad.name, bad.place))),
        (
            *replacements,
            *_unmatched("enabled", handlers.enabled, found, everything),
            *_unmatched("disabled", handlers.disabled, everything, everything),
        ),
        _digest_of(tools),
        tuple(everything),
        handlers,
    )


def _find_all(
    handlers: HandlersSettings, bundled: Path | None, before: Scan | None, touched: Touched
) -> list[Candidate]:
    found: list[Candidate] = []
    problems: list[Problem] = []
    for find in (
        partial(_refuse_bundled, handlers.paths, bundled),
        partial(folders.in_paths, handlers.paths, before.found if before else (), touched),
        partial(agents.in_paths, handlers.paths),
        partial(entries.in_entries, handlers.entries),
        partial(plugins.in_plugins, handlers.plugins),
    ):
        try:
            found += find()
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    if bundled is not None:
        found += folders.in_folder(bundled, "bundled")
        found += agents.in_folder(bundled, "bundled")
    return found


def _refuse_bundled(paths: Iterable[Path], bundled: Path | None) -> list[Candidate]:
    """Refuse the folder of the tools that are there already: edits of theirs are lost with an update."""
    if bundled is not None and any(_is_same(path, bundled) for path in paths):
        what = f"{bundled} holds the tools that come with session-runtime, which are there already"
        raise ConfigError([Problem(f"{what}: take it out", folders.KEY)])
    return []


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False


def _whole_name(candidate: Candidate) -> str:
    """What lists of names go by: a sub-agent's own tools are there with it."""
    return candidate.owner or candidate.name


def _without_strangers(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Leave out the own tools of sub-agents that are not there, or are replaced by another of the name."""
    homes = {each.name: each.place for each in chosen if each.is_agent}
    return [
        each
        for each in chosen
        if not each.owner or each.place.startswith(f"{homes.get(each.owner)}/")
    ]


def set_aside(found: Scan, faults: Mapping[str, str]) -> Scan:
    """The same without the tools that ``faults`` names with a reason: those are quarantined."""
    if not faults:
        return found
    kept = tuple(tool for tool in found.tools if tool.spec.name not in faults)
    bad = [
        Quarantined(tool.spec.name, tool.spec.place, faults[tool.spec.name])
        for tool in found.tools
        if tool.spec.name in faults
    ]
    quarantined = sorted((*found.quarantined, *bad), key=lambda bad: (bad.name, bad.place))
    return replace(found, tools=kept, quarantined=tuple(quarantined), digest=_digest_of(kept))


def _settle_names(
    wanted: Iterable[Candidate],
) -> tuple[list[Candidate], list[tuple[Candidate, Quarantined]], list[str]]:
    """Decide per name: the one to read, or the rivals to quarantine, and what is replaced."""
    by_name: dict[str, list[Candidate]] = {}
    for candidate in wanted:
        by_name.setdefault(candidate.name, []).append(candidate)
    chosen: list[Candidate] = []
    clashing: list[tuple[Candidate, Quarantined]] = []
    replacements: list[str] = []
    for name, rivals in sorted(by_name.items()):
        own = [each for each in rivals if not each.shipped]
        if own and len(own) < len(rivals):
            replacements.append(f"tool {name!r} in {own[0].place} replaces the bundled one")
        first, *others = own or rivals
        if others:
            places = " and ".join(each.place for each in (first, *others))
            reason = f"the name stands for {places}: rename or remove all but one"
            clashing += ((each, Quarantined(name, each.place, reason)) for each in (first, *others))
        else:
            chosen.append(first)
    return chosen, clashing, replacements


@dataclass(frozen=True, slots=True)
class _Read:
    """What came of a candidate: a tool, a fault, or both if its last good form stays."""

    candidate: Candidate
    tool: LocalTool | None
    fault: Quarantined | None = None


def _read_all(chosen: Iterable[Candidate], before: Scan | None, touched: Touched) -> list[_Read]:
    if before is None:
        return [_read(each, None) for each in chosen]
    known = {_identity(tool): tool for tool in before.tools}
    settled = _settled(before) if touched is not None else set()
    return [
        _Read(each, known[_key(each)])
        if id(each) in settled
        else _read(each, known.get(_key(each)))
        for each in chosen
    ]


def _settled(before: Scan) -> set[int]:
    """The candidates, by identity, that were tools without a fault: found again, they still are."""
    good = {_identity(tool) for tool in before.tools}
    good -= {(bad.name, bad.place, "handler") for bad in before.quarantined}
    return {id(each) for each in before.found if _key(each) in good and each.origin == "handler"}


def _key(candidate: Candidate) -> tuple[str, str, Origin]:
    return candidate.name, candidate.place, candidate.origin


def _identity(tool: LocalTool) -> tuple[str, str, Origin]:
    return tool.spec.name, tool.spec.place, tool.spec.origin


def _read(candidate: Candidate, before: LocalTool | None) -> _Read:
    try:
        return _Read(candidate, make_tool(candidate, before))
    except PermanentError as error:
        reason = str(error)
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    kept = None if before is None or never_worked(before) else before
    fault = Quarantined(candidate.name, candidate.place, reason, stale=kept is not None)
    return _Read(candidate, kept, fault)


def _digest_of(tools: Iterable[LocalTool]) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for tool in tools:
        hasher.update(b"%b\0%b\0" % (os.fsencode(tool.spec.place), tool.spec.digest.encode()))
    return hasher.hexdigest()


def _listings(handlers: HandlersSettings) -> list[Listing]:
    """Every item of a list that must bring at least one tool."""
    paths = (Listing(folders.KEY, str(path)) for path in handlers.paths)
    return [*paths, *(Listing(plugins.KEY, name) for name in handlers.plugins)]


def _refuse_useless(
    listings: Iterable[Listing],
    useful: Container[Listing | None],
    refused: Sequence[tuple[Candidate, Quarantined]],
) -> None:
    problems = [
        Problem(_why_useless(listing, refused), listing.key)
        for listing in listings
        if listing not in useful
    ]
    if problems:
        raise ConfigError(problems)


def _why_useless(listing: Listing, refused: Iterable[tuple[Candidate, Quarantined]]) -> str:
    here = [bad for each, bad in refused if each.listing == listing]
    if not here:
        return f"{listing.item} holds no tool: a tool is a folder with {MANIFEST} and {CODE}"
    reasons = "; ".join(f"{each.name}: {each.reason}" for each in here[:_MAX_REASONS])
    more = f"; and {len(here) - _MAX_REASONS} more" if len(here) > _MAX_REASONS else ""
    return f"{listing.item} holds no usable tool: {reasons}{more}"


def _unmatched(
    key: str, patterns: Iterable[str], found: Iterable[Candidate], everything: Iterable[Candidate]
) -> Iterator[str]:
    """Tell which patterns match nothing that was ``found``; ``everything`` has what is left out too."""
    names, all_names = [each.name for each in found], [each.name for each in everything]
    for pattern in patterns:
        meant = Patterns([pattern])
        if any(name in meant for name in names):
            continue
        told = f"handlers.{key}: {pattern!r} matches"
        if any(name in meant for name in all_names):
            way_out = "they need a section of their own, or handlers.bundled"
            yield f"{told} only tools that are left out: {way_out}"
        else:
            near = nearest(pattern, all_names)
            yield f"{told} no tool" + (f"; did you mean {near!r}?" if near else "")
