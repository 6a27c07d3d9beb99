"""Finds the tools below a set of folders and reads their files, importing nothing (REG-1, REG-4).

Which folder is which tool is decided in ``folders``; when code of them runs, in ``loader``.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from session_runtime.config.keys import nearest
from session_runtime.errors import ConfigError, PermanentError, Problem
from session_runtime.local.folders import CODE, MANIFEST, ToolFolder, read_files, tool_folders
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
    """A tool, the check of its arguments, and the code that its folder held when it was read.

    ``code`` maps the names of the folder's Python files to their bytes (REL-7).
    """

    spec: ToolSpec
    check: ArgumentCheck
    folder: Path
    code: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Scan:
    """What a set of folders holds, sorted by name; two scans of one digest hold the same tools."""

    tools: tuple[LocalTool, ...]
    quarantined: tuple[Quarantined, ...]
    warnings: tuple[str, ...]
    digest: str

    @property
    def checks(self) -> Mapping[str, ArgumentCheck]:
        """The checks of all tools by the digest of their tool, for ``build_catalog``."""
        return {tool.spec.digest: tool.check for tool in self.tools}


def scan(
    paths: Sequence[Path],
    bundled: Path | None,
    enabled: Sequence[str],
    disabled: Sequence[str],
    idle: Sequence[str] = (),
) -> Scan:
    """Read the tools below ``paths`` and those that come with the package, in ``bundled``.

    ``enabled`` and ``disabled`` are patterns of names; no ``enabled`` means all. ``idle`` are patterns of
    bundled tools that nothing was set up for. A tool that cannot be used is quarantined alone. Two of
    one name are both quarantined, but a tool below ``paths`` replaces a bundled one, with a warning.
    Raises ConfigError for a path that is no folder or holds no usable tool.
    """
    found = _find_all(paths, bundled, Patterns(idle))
    only, never = Patterns(enabled or ["*"]), Patterns(disabled)
    switched_off = {each.name for each in found if each.name not in only or each.name in never}
    chosen, clashing, replacements = _settle_names(
        each for each in found if each.name not in switched_off
    )
    read = [_read(folder) for folder in chosen]
    tools = tuple(each for each in read if isinstance(each, LocalTool))
    quarantined = (*clashing, *(each for each in read if isinstance(each, Quarantined)))
    usable = [tool.folder for tool in tools]
    usable += [each.path for each in found if each.name in switched_off]
    _refuse_useless(paths, usable, quarantined)
    return Scan(
        tools,
        tuple(sorted(quarantined, key=lambda each: (each.name, each.place))),
        (
            *replacements,
            *_unmatched("enabled", enabled, found),
            *_unmatched("disabled", disabled, found),
        ),
        _digest_of(tools),
    )


def _find_all(paths: Sequence[Path], bundled: Path | None, idle: Patterns) -> list[ToolFolder]:
    found: list[ToolFolder] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            found += tool_folders(path, "handler")
        except OSError as error:
            message = f"cannot be read as a folder of tools: {error.strerror}"
            problems.append(Problem(message, "handlers.paths", str(path)))
    if problems:
        raise ConfigError(problems)
    if bundled is not None:
        found += (each for each in tool_folders(bundled, "bundled") if each.name not in idle)
    return found


def _settle_names(
    folders: Iterable[ToolFolder],
) -> tuple[list[ToolFolder], list[Quarantined], list[str]]:
    """Decide per name: the folder to read, or the rivals to quarantine, and what is replaced."""
    by_name: dict[str, list[ToolFolder]] = {}
    for folder in folders:
        by_name.setdefault(folder.name, []).append(folder)
    chosen: list[ToolFolder] = []
    clashing: list[Quarantined] = []
    replacements: list[str] = []
    for name, rivals in sorted(by_name.items()):
        own = [each for each in rivals if each.origin == "handler"]
        if own and len(own) < len(rivals):
            replacements.append(f"tool {name!r} in {own[0].path} replaces the bundled one")
        first, *others = own or rivals
        if others:
            places = " and ".join(str(each.path) for each in (first, *others))
            reason = f"the name stands for {places}: rename or remove all but one"
            clashing += [Quarantined(name, str(each.path), reason) for each in (first, *others)]
        else:
            chosen.append(first)
    return chosen, clashing, replacements


def _read(folder: ToolFolder) -> LocalTool | Quarantined:
    try:
        return _load(folder)
    except PermanentError as error:
        return Quarantined(folder.name, str(folder.path), str(error))
    except OSError as error:
        return Quarantined(folder.name, str(folder.path), f"cannot be read: {error.strerror}")


def _load(folder: ToolFolder) -> LocalTool:
    if folder.fault is not None:
        raise PermanentError(folder.fault, code="tool.folder_unusable")
    files = read_files(folder)
    spec = _spec(folder, read_manifest(files[MANIFEST]), files)
    check = compile_schema(spec.parameters)
    code = {name: content for name, content in files.items() if name != MANIFEST}
    return LocalTool(spec, check, folder.path, MappingProxyType(code))


def _spec(folder: ToolFolder, manifest: Manifest, files: Mapping[str, bytes]) -> ToolSpec:
    function, options = manifest.function, manifest.runtime
    if canonical_name(function.name) not in (folder.name, folder.name.rpartition(".")[2]):
        raise PermanentError(
            f"function.name is {function.name!r} but the folder says {folder.name!r}: rename one",
            code="tool.name_invalid",
        )
    old = options.deprecated
    return ToolSpec(
        name=folder.name,
        description=function.description,
        parameters=function.parameters,
        origin=folder.origin,
        source_id=SOURCE_ID,
        native_name=folder.native_name,
        digest=_digest(folder.name, files),
        annotations=Annotations(options.destructive, options.read_only, options.idempotent),
        requires=options.requires,
        feature=options.feature,
        aliases=options.aliases,
        search_hints=options.search_hints,
        examples=options.examples,
        deprecated=Deprecated(old.reason, old.replacement) if old is not None else None,
        timeout_s=options.timeout_s,
        max_result_chars=options.max_result_chars,
    )


def _digest(name: str, files: Mapping[str, bytes]) -> str:
    hasher = hashlib.blake2b(name.encode(), digest_size=16)
    for file, content in sorted(files.items()):
        hasher.update(b"\0%b\0%d\0%b" % (os.fsencode(file), len(content), content))
    return hasher.hexdigest()


def _digest_of(tools: Iterable[LocalTool]) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for tool in tools:
        hasher.update(b"%b\0%b\0" % (os.fsencode(tool.folder), tool.spec.digest.encode()))
    return hasher.hexdigest()


def _refuse_useless(
    paths: Sequence[Path], usable: Sequence[Path], quarantined: Sequence[Quarantined]
) -> None:
    problems = [
        Problem(_why_useless(path, quarantined), "handlers.paths", str(path))
        for path in paths
        if not any(folder.is_relative_to(path) for folder in usable)
    ]
    if problems:
        raise ConfigError(problems)


def _why_useless(path: Path, quarantined: Sequence[Quarantined]) -> str:
    here = [each for each in quarantined if Path(each.place).is_relative_to(path)]
    if not here:
        return f"holds no tool: a tool is a folder with {MANIFEST} and {CODE}"
    reasons = "; ".join(f"{each.name}: {each.reason}" for each in here[:_MAX_REASONS])
    more = f"; and {len(here) - _MAX_REASONS} more" if len(here) > _MAX_REASONS else ""
    return f"holds no usable tool: {reasons}{more}"


def _unmatched(key: str, patterns: Iterable[str], found: Sequence[ToolFolder]) -> list[str]:
    names = [folder.name for folder in found]
    warnings: list[str] = []
    for pattern in patterns:
        meant = Patterns([pattern])
        if not any(name in meant for name in names):
            near = nearest(pattern, names)
            hint = f"; did you mean {near!r}?" if near else ""
            warnings.append(f"handlers.{key}: {pattern!r} matches no tool{hint}")
    return warnings
