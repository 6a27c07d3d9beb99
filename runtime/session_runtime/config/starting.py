"""The configuration file to start with: every key with its meaning and default, all commented out."""

import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.places import TRACE_FILE
from session_runtime.config.settings import Settings

_HEAD: Final = """\
# Configuration of session-runtime. What stands behind a "#" without a blank is the default, or an
# example: take the "#" away to change it. Environment variables win over this file;
# "session-runtime config explain KEY" shows which value wins and why; with --daemon,
# which one the running daemon has in force.
"""
_EXAMPLES: Final[Mapping[KeyPath, str]] = MappingProxyType(
    {
        ("models",): (
            '#[models.main]\n#base_url = "http://127.0.0.1:8000/v1"\n#model = "my-model"\n'
            '#api_key = "env:MAIN_API_KEY"\n'
        ),
        ("access", "rules"): '#[access.rules.guests]\n#roles = ["guest"]\n#deny = ["files.*"]\n',
        ("features",): "#[features]\n#beta = true\n",
        ("files", "roots"): '#[files.roots.shared]\n#path = "shared"\n#writable = false\n',
    }
)
_RULES: Final = re.compile(r" \([A-Z]+-\d+[a-z]?(, [A-Z]+-\d+[a-z]?)*\)")
_FOLLOWS_ANOTHER: Final[frozenset[KeyPath]] = frozenset({TRACE_FILE})
"""Keys that cannot be given their default: it depends on other keys."""


def starting_config() -> str:
    """Write the file; it says nothing yet, so all defaults hold."""
    return "".join((_HEAD, *_tables(Settings, ())))


def _tables(model: type[BaseModel], path: KeyPath) -> Iterator[str]:
    for name, field in model.model_fields.items():
        title, kind = (*path, name), field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield f"\n{_comment(_meaning(kind))}[{dotted(title)}]\n"
            yield from (_key((*title, key), each) for key, each in _leaves(kind))
            yield from _tables(kind, title)
        elif get_origin(kind) is Mapping:
            yield f"\n{_comment(f'[{dotted(title)}]: {field.description}')}"
            yield _EXAMPLES.get(title, "")


def _leaves(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        section = isinstance(kind, type) and issubclass(kind, BaseModel)
        if not section and get_origin(kind) is not Mapping:
            yield field.alias or name, field


def _meaning(model: type[BaseModel]) -> str:
    return _RULES.sub("", inspect.cleandoc(model.__doc__ or ""))


def _key(path: KeyPath, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if default is None or path in _FOLLOWS_ANOTHER:
        return _comment(f"{path[-1]}, not set: {field.description}")
    return f"{_comment(field.description or '')}#{path[-1]} = {_written(default)}\n"


def _written(value: Any) -> str:
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)


def _comment(text: str) -> str:
    lines = textwrap.wrap(
        " ".join(text.split()),
        98,
        initial_indent="# ",
        subsequent_indent="# ",
        break_on_hyphens=False,
    )
    return "".join(f"{line}\n" for line in lines)
