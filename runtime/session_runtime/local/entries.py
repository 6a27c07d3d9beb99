"""The tools of [handlers.entries]: functions that the configuration names and describes (REG-6)."""

import json
from collections.abc import Mapping
from functools import partial

from session_runtime.config.handlers import HandlerEntry
from session_runtime.config.json_value import thawed
from session_runtime.config.keys import dotted
from session_runtime.errors import ConfigError, Problem
from session_runtime.local.candidate import Candidate, Material, read_file, registered_fault
from session_runtime.local.code import ImportPath


def in_entries(entries: Mapping[str, HandlerEntry]) -> list[Candidate]:
    """Give the tools of all entries; ConfigError for names no tool can have and for missing files."""
    found: list[Candidate] = []
    problems: list[Problem] = []
    for name, entry in entries.items():
        key = dotted(("handlers", "entries", name))
        code = ImportPath.parse(entry.import_)
        if (fault := registered_fault(name)) is not None:
            problems.append(Problem(f"cannot be a name: {fault}", key))
        elif entry.schema_ is not None and not entry.schema_.exists():
            problems.append(Problem(f"there is no file {entry.schema_}", f"{key}.schema"))
        else:
            read = partial(_read, name, entry, code)
            found.append(Candidate(name, f"{key} ({code})", str(code), "handler", read))
    if problems:
        raise ConfigError(problems)
    return found


def _read(name: str, entry: HandlerEntry, code: ImportPath) -> Material:
    if entry.schema_ is not None:
        return Material(read_file(entry.schema_), code, label=entry.schema_.name)
    return Material(_manifest(name, entry), code, label="the entry")


def _manifest(name: str, entry: HandlerEntry) -> bytes:
    """Write down as a ``config.json`` what the entry says, so that one reader judges them all."""
    function: dict[str, object] = {"name": name, "description": entry.description}
    if entry.parameters:
        function["parameters"] = thawed(entry.parameters)
    runtime = entry.runtime.model_dump(mode="json", exclude_defaults=True)
    manifest = {"type": "function", "function": function, "runtime": runtime}
    return json.dumps(manifest).encode()
