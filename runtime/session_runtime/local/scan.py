"""Makes tools of all that is registered, importing nothing (REG-1, REG-4, REG-6).

What is registered is found in ``folders``, ``entries`` and ``plugins``; when code of it runs is decided in
``loader``.
"""

import hashlib
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, assert_never

from session_runtime.config.handlers import HandlersSettings
from session_runtime.config.keys import nearest
from session_runtime.errors import ConfigError, PermanentError, Problem
from session_runtime.local import entries, folders, plugins
from session_runtime.local.candidate import MANIFEST, Candidate, Listing, Material
from session_runtime.local.code import Code, ImportPath, StoredCode
from session_runtime.local.manifest import Manifest, read_manifest
from session_runtime.registry.catalog import Quarantined
from session_runtime.registry.names import canonical_name
from session_runtime.registry.patterns import Patterns
from session_runtime.registry.schema import ArgumentCheck, compile_schema
from session_runtime.registry.spec import Annotations, Deprecated, ToolSpec

SOURCE_ID: Final = "handlers"

_MAX_REASONS: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class LocalTool:
    """A tool, the check of its arguments, and where its code is."""

    spec: ToolSpec
    check: ArgumentCheck
    code: Code


@dataclass(frozen=True, slots=True)
class Scan:
    """What is registered, sorted by name; two scans of one digest hold the same tools."""

    tools: tuple[LocalTool, ...]
    quarantined: tuple[Quarantined, ...]
    warnings: tuple[str, ...]
    digest: str

    @property
    def checks(self) -> Mapping[str, ArgumentCheck]:
        """The checks of all tools by the digest of their tool, for ``build_catalog``."""
        return {tool.spec.digest: tool.check for tool in self.tools}


def scan(handlers: HandlersSettings, bundled: Path | None, idle: Sequence[str] = ()) -> Scan:
    """Read the tools that ``handlers`` registers, and those that come with the package, in ``bundled``.

    ``idle`` are patterns of bundled tools that nothing was set up for. A tool that cannot be used is
    quarantined alone. Two of one name are both quarantined, but any tool replaces a bundled one, with a
    warning. Raises ConfigError for what is named in the configuration and not there at all, and for an
    item of a list that holds no usable tool.
    """
    found = _find_all(handlers, bundled, Patterns(idle))
    only, never = Patterns(handlers.enabled or ["*"]), Patterns(handlers.disabled)
    wanted = [each for each in found if each.name in only and each.name not in never]
    chosen, clashing, replacements = _settle_names(wanted)
    read = [(each, _read(each)) for each in chosen]
    tools = tuple(tool for _, tool in read if isinstance(tool, LocalTool))
    refused = [*clashing, *((each, bad) for each, bad in read if isinstance(bad, Quarantined))]
    useful = {each.listing for each, tool in read if isinstance(tool, LocalTool)}
    wanted_names = {each.name for each in wanted}
    useful |= {each.listing for each in found if each.name not in wanted_names}
    _refuse_useless(_listings(handlers), useful, refused)
    return Scan(
        tools,
        tuple(sorted((bad for _, bad in refused), key=lambda bad: (bad.name, bad.place))),
        (
            *replacements,
            *_unmatched("enabled", handlers.enabled, found),
            *_unmatched("disabled", handlers.disabled, found),
        ),
        _digest_of(tools),
    )


def _find_all(handlers: HandlersSettings, bundled: Path | None, idle: Patterns) -> list[Candidate]:
    found: list[Candidate] = []
    problems: list[Problem] = []
    for find in (
        partial(folders.in_paths, handlers.paths),
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
        ours = folders.in_folder(bundled, "bundled")
        found += (each for each in ours if each.name not in idle)
    return found


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
        own = [each for each in rivals if each.origin == "handler"]
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


def _read(candidate: Candidate) -> LocalTool | Quarantined:
    try:
        return _tool(candidate, candidate.read())
    except PermanentError as error:
        return Quarantined(candidate.name, candidate.place, str(error))
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        return Quarantined(candidate.name, candidate.place, reason)


def _tool(candidate: Candidate, material: Material) -> LocalTool:
    spec = _spec(candidate, read_manifest(material.manifest, material.label), material)
    return LocalTool(spec, compile_schema(spec.parameters), material.code)


def _spec(candidate: Candidate, manifest: Manifest, material: Material) -> ToolSpec:
    function, options = manifest.function, manifest.runtime
    if canonical_name(function.name) not in (candidate.name, candidate.name.rpartition(".")[2]):
        raise PermanentError(
            f"function.name is {function.name!r} but it is registered as {candidate.name!r}:"
            " rename one",
            code="tool.name_invalid",
        )
    old = options.deprecated
    return ToolSpec(
        name=candidate.name,
        description=function.description,
        parameters=function.parameters,
        origin=candidate.origin,
        source_id=SOURCE_ID,
        native_name=candidate.native_name,
        place=candidate.place,
        digest=_digest(candidate.name, material),
        annotations=Annotations(options.destructive, options.read_only, options.idempotent),
        requires=frozenset(options.requires),
        feature=options.feature,
        aliases=options.aliases,
        search_hints=options.search_hints,
        examples=options.examples,
        deprecated=Deprecated(old.reason, old.replacement) if old.is_stated else None,
        timeout_s=options.timeout_s,
        max_result_chars=options.max_result_chars,
    )


def _digest(name: str, material: Material) -> str:
    hasher = hashlib.blake2b(name.encode(), digest_size=16)
    for part, content in sorted({MANIFEST: material.manifest, **_parts(material)}.items()):
        hasher.update(b"\0%b\0%d\0%b" % (os.fsencode(part), len(content), content))
    return hasher.hexdigest()


def _parts(material: Material) -> Mapping[str, bytes]:
    """What code a tool has, as far as it can be told without importing it."""
    match material.code:
        case StoredCode(files=files):
            return files
        case ImportPath() as path:
            return {"import": str(path).encode(), "version": material.version.encode()}
        case _:
            assert_never(material.code)


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
        return (
            f"{listing.item} holds no tool: a tool is a folder with {MANIFEST} and {folders.CODE}"
        )
    reasons = "; ".join(f"{each.name}: {each.reason}" for each in here[:_MAX_REASONS])
    more = f"; and {len(here) - _MAX_REASONS} more" if len(here) > _MAX_REASONS else ""
    return f"{listing.item} holds no usable tool: {reasons}{more}"


def _unmatched(key: str, patterns: Iterable[str], found: Sequence[Candidate]) -> list[str]:
    names = [each.name for each in found]
    warnings: list[str] = []
    for pattern in patterns:
        meant = Patterns([pattern])
        if not any(name in meant for name in names):
            near = nearest(pattern, names)
            hint = f"; did you mean {near!r}?" if near else ""
            warnings.append(f"handlers.{key}: {pattern!r} matches no tool{hint}")
    return warnings
