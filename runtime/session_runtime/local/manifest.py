"""What a ``config.json`` may say (REG-3); where there is one is decided by the finders.

What it may say in ``runtime`` is the same as in an entry of the configuration, and stands there.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from session_runtime.config.handlers import Text, ToolOptions
from session_runtime.config.json_faults import json_faults
from session_runtime.errors import PermanentError
from session_runtime.registry.names import canonical_name, name_fault


def _checked(options: ToolOptions) -> ToolOptions:
    old = options.deprecated
    faults = [_name_fault(name) for name in (*options.aliases, *filter(None, [old.replacement]))]
    if "deprecated" in options.model_fields_set and not old.is_stated:
        faults.append("deprecated says nothing: give a reason or a replacement")
    if any(faults):
        raise ValueError("; ".join(filter(None, faults)))
    return options


def _name_fault(name: str) -> str | None:
    fault = name_fault(name)
    if fault is None and canonical_name(name) != name:
        fault = f"write {canonical_name(name)!r}"
    return None if fault is None else f"{name!r} cannot be a name: {fault}"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Function(_Part):
    """The function as a model sees it; ``parameters`` is a JSON Schema of type object."""

    name: str
    description: Text
    parameters: dict[str, Any] = Field(default={"type": "object", "properties": {}})


class Manifest(_Part):
    """A whole ``config.json``."""

    type: Literal["function"]
    function: Function
    runtime: Annotated[ToolOptions, AfterValidator(_checked)] = ToolOptions()


def read_manifest(content: bytes, label: str) -> Manifest:
    """Read a ``config.json``; PermanentError names every fault by its key.

    ``label`` is what the file is called in messages.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(label, f"it is not UTF-8 (byte {error.start})") from error
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise _unusable(label, "; ".join(json_faults(error, Manifest))) from error


def _unusable(label: str, why: str) -> PermanentError:
    return PermanentError(f"{label}: {why}", code="tool.manifest_invalid")
