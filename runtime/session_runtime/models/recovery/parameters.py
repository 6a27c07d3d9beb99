"""Gives values that were written between tags their types, where the schema leaves no choice (ASK-5)."""

import json
from typing import Final

from session_runtime.models.recovery.written import Parameters
from session_runtime.registry.wanted_types import property_types
from session_runtime.types import JsonObject
from session_runtime.wire.strict import strict_json

_TRUE_AND_FALSE: Final = frozenset({"true", "false"})


def arguments_of(parameters: Parameters, schema: JsonObject) -> str:
    """The JSON text of an object with these values.

    A text stays one unless the schema takes none and the text is JSON of a type that it takes; what does
    not fit is left for the check of the arguments to refuse. A name given twice is written twice, so that
    it is refused as well.
    """
    wanted = property_types(schema)
    pairs = (
        f"{_json(name)}: {_json(_typed(raw, wanted.get(name, frozenset())))}"
        for name, raw in parameters
    )
    return f"{{{', '.join(pairs)}}}"


def _typed(raw: str, types: frozenset[str]) -> object:
    if not types or "string" in types:
        return raw
    text = raw.strip()
    folded = text.casefold()
    try:
        value = strict_json(folded if folded in _TRUE_AND_FALSE else text)
    except ValueError:
        return raw
    return value if _is_one_of(value, types) else raw


def _is_one_of(value: object, types: frozenset[str]) -> bool:
    match value:
        case None:
            return "null" in types
        case bool():
            return "boolean" in types
        case int():
            return not types.isdisjoint({"integer", "number"})
        case float():
            return "number" in types
        case list():
            return "array" in types
        case dict():
            return "object" in types
        case _:
            return False


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
