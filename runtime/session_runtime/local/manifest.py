"""What a handler's ``config.json`` may say (REG-3); where it is found is decided in ``scan``."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from session_runtime.config.keys import nearest
from session_runtime.errors import PermanentError
from session_runtime.registry.names import canonical_name, name_fault


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _usable_name(name: str) -> str:
    fault = name_fault(name)
    if fault is not None:
        raise ValueError(f"cannot be a name: {fault}")
    if canonical_name(name) != name:
        raise ValueError(f"cannot be a name: write {canonical_name(name)!r}")
    return name


_Text = Annotated[str, Field(max_length=8192), AfterValidator(_not_blank)]
_Name = Annotated[str, AfterValidator(_usable_name)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Deprecation(_Part):
    """The tool should no longer be used; ``replacement`` is the name of the tool to use instead."""

    reason: str = ""
    replacement: _Name | None = None


class RuntimeOptions(_Part):
    """What the model is not told: who may call the tool, how long it may take, how to find it.

    ``requires`` lists roles a caller must have, all of them; ``feature`` a switch that must be on.
    """

    requires: frozenset[_Text] = frozenset()
    feature: _Text | None = None
    destructive: bool = False
    read_only: bool = False
    idempotent: bool = False
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    max_result_chars: Annotated[int, Field(ge=1)] | None = None
    aliases: tuple[_Name, ...] = ()
    search_hints: tuple[_Text, ...] = ()
    examples: tuple[_Text, ...] = ()
    deprecated: Deprecation | None = None

    @model_validator(mode="after")
    def _destroys_or_reads(self) -> "RuntimeOptions":
        if self.destructive and self.read_only:
            raise ValueError("a tool cannot be both destructive and read_only")
        return self


class Function(_Part):
    """The function as a model sees it; ``parameters`` is a JSON Schema of type object."""

    name: str
    description: _Text
    parameters: dict[str, Any] = Field(default={"type": "object", "properties": {}})


class Manifest(_Part):
    """A whole ``config.json``."""

    type: Literal["function"]
    function: Function
    runtime: RuntimeOptions = RuntimeOptions()


def read_manifest(content: bytes) -> Manifest:
    """Read a ``config.json``; PermanentError names every fault by its key."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(f"it is not UTF-8 (byte {error.start})") from error
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        told = [_worded(each["loc"], each["type"], each["msg"]) for each in faults]
        raise _unusable("; ".join(told)) from error


def _unusable(why: str) -> PermanentError:
    return PermanentError(f"config.json: {why}", code="tool.manifest_invalid")


_KEYS: dict[tuple[int | str, ...], type[_Part]] = {
    (): Manifest,
    ("function",): Function,
    ("runtime",): RuntimeOptions,
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
