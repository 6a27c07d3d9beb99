"""The tools of [handlers] plugins: entry points of installed packages that are named there (REG-6).

A package that is not named is not asked, and no code of one that is runs here.
"""

from collections.abc import Iterable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Final

from session_runtime.config.handlers import import_fault
from session_runtime.errors import ConfigError, PermanentError, Problem
from session_runtime.local.candidate import (
    MANIFEST,
    Candidate,
    Listing,
    Material,
    read_file,
    registered_fault,
    told_twice,
    unusable,
)
from session_runtime.local.code import ImportPath
from session_runtime.spelling import hint

GROUP: Final = "session_runtime.handlers"
KEY: Final = "handlers.plugins"


def in_plugins(names: Iterable[str]) -> list[Candidate]:
    """Find the tools of these packages; ConfigError for those that are not installed or have none."""
    found: list[Candidate] = []
    packages: list[str] = []
    problems: list[Problem] = []
    for name in names:
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            problems.append(Problem(_not_installed(name), KEY))
            packages.append(name)
            continue
        packages.append(distribution.name or name)
        points = distribution.entry_points.select(group=GROUP)
        version = distribution.version or "of unknown version"
        found += (_candidate(name, version, point) for point in points)
        if not points:
            problems.append(Problem(f"{name!r} has no entry points of the group {GROUP}", KEY))
    problems += told_twice(KEY, "package", packages)
    if problems:
        raise ConfigError(problems)
    return found


def _not_installed(name: str) -> str:
    around = (point.dist for point in metadata.entry_points(group=GROUP))
    known = {each.name for each in around if each is not None and each.name}
    way_out = hint(name, known) or "install it where the daemon runs"
    return f"no package {name!r} is installed; {way_out}"


def _candidate(plugin: str, version: str, point: metadata.EntryPoint) -> Candidate:
    return Candidate(
        name=point.name,
        place=f"{plugin} {version} ({point.name} = {point.value})",
        native_name=point.value,
        origin="handler",
        read=partial(_read, point.name, point.value, version),
        listing=Listing(KEY, plugin),
    )


def _read(name: str, value: str, version: str) -> Material:
    if (fault := registered_fault(name)) is not None:
        raise PermanentError(f"its name cannot be used: {fault}", code="tool.name_invalid")
    if (fault := import_fault(value)) is not None:
        raise unusable(f"its entry point {fault}")
    code = ImportPath.parse(value)
    manifest = _folder_of(code) / MANIFEST
    if not manifest.exists():
        raise unusable(f"there is no {manifest}, which its package has to bring along")
    return Material(read_file(manifest), code, version=version)


def _folder_of(code: ImportPath) -> Path:
    """Find the folder that holds the module's file; PermanentError if it is not there, or in no package.

    A module outside of packages would share its folder with whatever else is installed.
    """
    for home in code.homes():
        path = home.joinpath(*code.module.split(".")[1:])
        if (path / "__init__.py").is_file():
            return path
        if path != home and path.with_name(f"{path.name}.py").is_file():
            return path.parent
    raise unusable(
        f"there is no module {code.module} in a package, beside which {MANIFEST} could be"
    )
