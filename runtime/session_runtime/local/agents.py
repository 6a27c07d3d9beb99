"""Which folders are sub-agents, their own tools, and what they are made of (ASK-11).

How one runs is decided in ``ask``, who may use what in ``registry.policy``.
"""

import json
import os
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from session_runtime.config.agents import AgentSettings
from session_runtime.config.json_faults import json_faults
from session_runtime.local.candidate import (
    AGENTS,
    MANIFEST,
    Candidate,
    Material,
    read_file,
    unknown_stamp,
    unusable,
)
from session_runtime.local.code import StoredCode
from session_runtime.local.folders import leads_out, subfolders, tool_at
from session_runtime.registry.names import canonical_name
from session_runtime.registry.spec import Origin

PROMPT: Final = "prompt.md"
SETTINGS: Final = "agent.toml"
TOOLS: Final = "tools"


@dataclass(frozen=True, slots=True)
class AgentForm:
    """What the files of a sub-agent say beside its ``config.json``."""

    prompt: str
    settings: AgentSettings


def in_paths(paths: Iterable[Path]) -> list[Candidate]:
    """Find the sub-agents below all folders of [handlers] paths; what cannot be read is told elsewhere."""
    return [each for path in paths for each in in_folder(path, "handler")]


def in_folder(root: Path, origin: Origin) -> Iterator[Candidate]:
    """Find ``agents/<name>/`` below ``root``, each followed by its ``tools/<tool>/``."""
    try:
        entries = subfolders(root / AGENTS)
    except (OSError, ValueError):
        return
    for entry in entries:
        yield _agent(entry, root, shipped=origin == "bundled")
        yield from _own_tools(entry, root, origin)


def read_form(material: Material) -> AgentForm:
    """What the files of an agent say; PermanentError names every fault by its key."""
    assert isinstance(material.code, StoredCode), "agents are folders"
    files = material.code.files
    prompt = _text(PROMPT, files[PROMPT])
    if not prompt.strip():
        raise unusable(f"{PROMPT} is blank: say what the agent is to do")
    return AgentForm(prompt, _settings(_text(SETTINGS, files.get(SETTINGS, b""))))


def _settings(text: str) -> AgentSettings:
    try:
        values = tomllib.loads(text)
        return AgentSettings.model_validate_json(json.dumps(values, default=str))
    except tomllib.TOMLDecodeError as error:
        raise unusable(f"{SETTINGS} is no TOML: {error}") from error
    except ValidationError as error:
        raise unusable(f"{SETTINGS}: {'; '.join(json_faults(error, AgentSettings))}") from error


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unusable(f"{name} is not UTF-8 (byte {error.start})") from error


def _agent(entry: os.DirEntry[str], root: Path, *, shipped: bool) -> Candidate:
    """What is read of it is told in full each time: there are few."""
    found = tool_at(entry, (AGENTS, entry.name), root, "agent")
    usable = found.stamp is not unknown_stamp
    return replace(
        found,
        name=found.name.removeprefix(f"{AGENTS}."),
        read=partial(_read, entry.path, root) if usable else found.read,
        stamp=unknown_stamp,
        is_agent=True,
        shipped=shipped,
    )


def _own_tools(entry: os.DirEntry[str], root: Path, origin: Origin) -> Iterator[Candidate]:
    try:
        tools = subfolders(Path(entry.path) / TOOLS)
    except (OSError, ValueError):
        return
    for tool in tools:
        found = tool_at(tool, (AGENTS, entry.name, tool.name), root, origin)
        yield replace(found, owner=canonical_name(entry.name))


def _read(folder: str, root: Path) -> Material:
    files: dict[str, bytes] = {}
    for name in (MANIFEST, PROMPT, SETTINGS):
        path = Path(folder) / name
        if leads_out(path, root):
            raise unusable(f"{name} is a link that leads out of {root}")
        if name != SETTINGS or path.exists():
            files[name] = read_file(path)
    manifest = files.pop(MANIFEST)
    return Material(manifest, StoredCode(Path(folder), MappingProxyType(files)))
