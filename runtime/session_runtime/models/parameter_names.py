"""What parameters are called where a service takes only some characters in their names, and back.

A service that refuses one name refuses the whole request. Only the names at the top of a schema are
looked at, as the service does.
"""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, Final

from session_runtime.types import JsonObject
from session_runtime.wire import strict_json

_FITS: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")
_MAX_CHARS: Final = 64
_ROOM: Final = 8


class ParameterNames:
    """The parameters of one tool that need another name; the same for the same schema."""

    def __init__(self, schema: JsonObject) -> None:
        properties = schema.get("properties")
        names = list(properties) if isinstance(properties, Mapping) else []
        self._sent = _other_names(names)
        self._own = {sent: name for name, sent in self._sent.items()}

    def schema(self, schema: JsonObject) -> JsonObject:
        """The schema under the names that are sent."""
        if not self._sent:
            return schema
        changed: dict[str, Any] = {**schema, "properties": self._renamed(schema["properties"])}
        if isinstance(required := schema.get("required"), list | tuple):
            changed["required"] = [self._sent.get(name, name) for name in required]
        return changed

    def sent(self, arguments: JsonObject) -> JsonObject:
        """Arguments as the service knows them."""
        return self._renamed(arguments) if self._sent else arguments

    def own(self, arguments: str) -> str:
        """The text of arguments that a model gave, under the names of the tool; if it can be read."""
        if not self._own:
            return arguments
        try:
            given = strict_json(arguments)
        except (ValueError, RecursionError):
            return arguments
        if not isinstance(given, dict) or self._own.keys().isdisjoint(given):
            return arguments
        named = {self._own.get(name, name): value for name, value in given.items()}
        return json.dumps(named, ensure_ascii=False) if len(named) == len(given) else arguments

    def _renamed(self, values: JsonObject) -> dict[str, Any]:
        return {self._sent.get(name, name): value for name, value in values.items()}


def _other_names(names: Iterable[str]) -> dict[str, str]:
    names = list(names)
    taken = {name for name in names if _FITS.fullmatch(name)}
    others: dict[str, str] = {}
    for name in names:
        if name not in taken and name not in others:
            others[name] = _free(name, taken)
            taken.add(others[name])
    return others


def _free(name: str, taken: set[str]) -> str:
    plain = _UNFIT.sub("_", name)[: _MAX_CHARS - _ROOM] or "_"
    numbered = (f"{plain}_{n}" for n in count(2))
    return plain if plain not in taken else next(each for each in numbered if each not in taken)
