"""How faults of JSON files are told that others write beside the configuration: tools and scripts.

Each is named by its key in the file, as in ``replies[0].text``; what a file may say is its reader's business.
"""

from collections.abc import Mapping
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from session_runtime.config.faults import expected, written
from session_runtime.config.keys import nearest
from session_runtime.config.shape import bare
from session_runtime.types import NOTHING

_SYNTAX: Final = "Invalid JSON: "
_OBJECTS: Final = frozenset({"model_type", "model_attributes_type", "dict_type", "mapping_type"})
_VALUE_SAYS_NOTHING: Final = frozenset({"json_invalid", "missing", "extra_forbidden"})

Loc = tuple[int | str, ...]


def json_faults(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Tell every fault of a file that should have been a ``model``, each in one line."""
    alternatives: dict[Loc, list[ErrorDetails]] = {}
    for fault in error.errors(include_url=False):
        alternatives.setdefault(_known_part(fault["loc"], model), []).append(fault)
    return [_told(loc, faults, model) for loc, faults in alternatives.items()]


def _told(loc: Loc, faults: list[ErrorDetails], model: type[BaseModel]) -> str:
    """One place, and all that would do there if the value may be of several kinds."""
    first, *others = (_must(fault, model) for fault in faults)
    texts = (first, *(other.removeprefix("must be ") for other in others))
    return f"{_path(loc)}{' or '.join(texts)}{_given(faults[0])}"


def _must(fault: ErrorDetails, model: type[BaseModel]) -> str:
    kind, message = fault["type"], fault["msg"]
    if kind == "json_invalid":
        return f"not valid JSON: {message.removeprefix(_SYNTAX)}"
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        *around, name = fault["loc"]
        if meant := _where(str(name), model):
            return f"unknown key here; write {meant}"
        near = nearest(str(name), _keys(tuple(around), model))
        return "unknown key" + (f"; did you mean {near}?" if near else "")
    if kind in _OBJECTS:
        return "must be an object"
    return expected(kind, fault.get("ctx", {}), f"{message[:1].lower()}{message[1:]}")


def _given(fault: ErrorDetails) -> str:
    value, is_container = fault["input"], isinstance(fault["input"], Mapping | list)
    if fault["type"] in _VALUE_SAYS_NOTHING or (is_container and fault["type"] == "value_error"):
        return ""
    if value is None:
        return " (given: null)"
    return f" (given: {'an object' if isinstance(value, Mapping) else written(value)})"


def _path(loc: Loc) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return f"{path.removeprefix('.')}: " if path else ""


def _known_part(loc: Loc, model: type[BaseModel]) -> Loc:
    """Leave out the steps that pydantic adds to say which kind of value it tried."""
    kind: Any = model
    for at, part in enumerate(loc):
        inner = _inside(kind, part)
        if inner is None:
            return loc[: at + 1] if _fields(kind) else loc[:at]
        kind = inner
    return loc


def _keys(loc: Loc, model: type[BaseModel]) -> list[str]:
    kind: Any = model
    for part in loc:
        kind = _inside(kind, part)
    return list(_fields(kind))


def _where(name: str, model: type[BaseModel]) -> str | None:
    """The path of a key that belongs into an object of the file; None if no such object has it."""
    fields = ((outer, bare(field.annotation)) for outer, field in model.model_fields.items())
    return next((f"{outer}.{name}" for outer, kind in fields if name in _fields(kind)), None)


def _inside(kind: Any, part: int | str) -> Any:
    """The kind of the value at one step inside a ``kind``; None if there is no such step."""
    if part in _fields(kind):
        return bare(_fields(kind)[str(part)].annotation)
    if get_origin(kind) is tuple and isinstance(part, int):
        return bare(get_args(kind)[0])
    return None


def _fields(kind: Any) -> Mapping[str, FieldInfo]:
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    return kind.model_fields if is_model else NOTHING
