"""What a ``config.json`` may say (REG-3); where there is one is decided by the finders.

What it may say in ``runtime`` is the same as in an entry of the configuration, and stands there.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from session_runtime.config.handlers import Deprecation, Text, ToolOptions
from session_runtime.config.keys import nearest
from session_runtime.errors import PermanentError
from session_runtime.registry.names import canonical_name, name_fault


def _checked(options: ToolOptions) -> ToolOptions:
    old = options.deprecated
    if "deprecated" in options.model_fields_set and not old.is_stated:
        raise ValueError("deprecated says nothing: give a reason or a replacement")
    for name in (*options.aliases, *filter(None, [old.replacement])):
        if (fault := name_fault(name)) is not None:
            raise ValueError(f"{name!r} cannot be a name: {fault}")
        if canonical_name(name) != name:
            raise ValueError(f"{name!r} cannot be a name: write {canonical_name(name)!r}")
    return options


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
        faults = error.errors(include_url=False, include_input=False)
        told = [_worded(each["loc"], each["type"], each["msg"]) for each in faults]
        raise _unusable(label, "; ".join(told)) from error


def _unusable(label: str, why: str) -> PermanentError:
    return PermanentError(f"{label}: {why}", code="tool.manifest_invalid")


_KEYS: dict[tuple[int | str, ...], type[BaseModel]] = {
    (): Manifest,
    ("function",): Function,
    ("runtime",): ToolOptions,
    ("runtime", "deprecated"): Deprecation,
}


def _worded(place: tuple[int | str, ...], kind: str, message: str) -> str:
    key = ".".join(map(str, place))
    match kind:
        case "json_invalid":
            return message.removeprefix("Invalid JSON: ")
        case "extra_forbidden":
            near = nearest(str(place[-1]), _KEYS[place[:-1]].model_fields)
            return f"{key}: unknown key" + (f"; did you mean {near}?" if near else "")
        case "value_error":
            return f"{key}: {message.removeprefix('Value error, ')}"
        case _:
            return f"{key or 'the whole'}: {message[:1].lower()}{message[1:]}"
