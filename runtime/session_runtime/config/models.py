"""The section [models]: one profile per model that may answer. How it is spoken to is in ``models``."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator

from session_runtime.config.additions import BodyField, HeaderName, HeaderValue, header_value
from session_runtime.config.addresses import http_address
from session_runtime.config.json_value import JsonValue
from session_runtime.config.section import (
    Count,
    Name,
    Seconds,
    Section,
    Whole,
    key,
    read_only,
    table,
)

Wire = Literal["chat", "responses", "anthropic", "offline", "scripted"]
CallMode = Literal["native", "json_schema", "text"]
_T = TypeVar("_T")

_SERVICES: tuple[Wire, ...] = ("chat", "responses", "anthropic")
_MODES: Mapping[CallMode, tuple[Wire, ...]] = MappingProxyType(
    {"json_schema": ("chat", "responses"), "text": _SERVICES}
)
_FORM_FIELDS = frozenset({"response_format", "text", "guided_json", "grammar"})
_CALL_FIELDS = frozenset({"tool_choice", "parallel_tool_calls"})
_PATHS = ("/chat/completions", "/responses", "/messages")

DEFAULT_WIRE: Wire = "chat"

NEEDS_IT = "needs it"
"""How a fault ends that tells of a key that another one cannot do without."""

SHARED_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "chat": "OPENAI_API_KEY",
        "responses": "OPENAI_API_KEY",
        "anthropic": "ANTHROPIC_API_KEY",
    }
)
"""Per wire, the variable whose key serves the profiles that have none of their own (CFG-2)."""


class ModelProfile(Section):
    """A model, where it is reached, and what it can do."""

    wire: Wire = key(
        DEFAULT_WIRE,
        "How the model is spoken to: chat (a chat completions service), responses (a service with"
        " the Responses protocol), anthropic (a service with Anthropic's Messages protocol), offline"
        " (built in, without a network) or scripted (replies read from a file).",
    )
    base_url: str | None = key(
        None,
        "Address of the service up to, but without, /chat/completions, /responses or /messages; for"
        " the wires chat, responses and anthropic.",
        in_repr=False,
    )
    api_key: SecretStr | None = key(
        None,
        'Key of the service, best as "env:NAME" or "file:/path". Unset: OPENAI_API_KEY serves'
        " profiles of the wires chat and responses, ANTHROPIC_API_KEY those of the wire anthropic;"
        ' "" sends no key at all.',
    )
    model: Name | None = key(
        None, "The model's name at the service; for the wires chat, responses and anthropic."
    )
    context_window: Count | None = key(
        None,
        "How much the model can read, in tokens; unset means unknown, and then"
        " tool_search_threshold_percent has no effect.",
    )
    supports_tool_search: bool = key(
        True, "Whether tool search may be used; if not, the model gets the full list of tools."
    )
    call_mode: CallMode = key(
        "native",
        "How the model is offered tools and calls them: native (as the service's protocol has it), text"
        " (told in the system text, called in a notation that is read from the reply) or json_schema (told"
        " likewise, the service holds each reply to a JSON object that is an answer or calls). text is for"
        " the wires chat, responses and anthropic, json_schema for chat and responses.",
    )
    name_separator: Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,8}$")] = key(
        "__", "What stands for the dot of a tool name when the service is spoken to."
    )
    max_tools: Count | None = key(
        None,
        "How many tools a request may hold; unset means any number. With more the ask fails before"
        " anything is sent; tool search loads no tool beyond it.",
        network=True,
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = key(
        None, "How freely the model chooses its words; unset leaves it to the service."
    )
    max_output_tokens: Count | None = key(
        None,
        "The longest reply, in tokens; unset leaves it to the service, which the wire anthropic cannot:"
        " there it is 8192.",
        network=True,
    )
    timeout_s: Seconds = key(120.0, "The longest wait for a reply, in seconds.", network=True)
    max_retries: Whole = key(
        2, "How often a request that failed for now is sent again.", network=True
    )
    max_concurrency: Whole = key(
        0,
        "How many requests of this profile may run at once, others wait their turn; 0 means any"
        " number.",
        network=True,
    )
    fallback: Name | None = key(
        None,
        "The profile that takes over for the rest of an ask when this one fails for good; unset"
        " means that the ask fails.",
    )
    headers: Annotated[Mapping[HeaderName, HeaderValue], AfterValidator(read_only)] = table(
        'Headers to be added to each request; values are secrets, best as "env:NAME" or'
        ' "file:/path". Not those that the runtime sets itself; Authorization, or X-Api-Key on the'
        " wire anthropic, only without api_key."
    )
    extra_body: Annotated[Mapping[BodyField, JsonValue], AfterValidator(read_only)] = table(
        "Fields to be added to the JSON body of each request. Not those that the runtime writes"
        " itself. A variable for a single field is read as JSON if it is JSON, else as text.",
        in_repr=False,
    )
    script: Path | None = key(None, "File with the replies; for wire scripted.")
    stream: bool = key(True, "Whether replies are read while they are written.")
    recover_text_calls: bool = key(
        True,
        "Whether a reply whose whole text is tool calls in the notation of a known model family counts"
        " as these calls; if not, it is an answer like any other.",
    )
    starts_thinking: bool = key(
        False,
        "Whether replies begin inside the model's thinking, because the service put the opening tag into"
        " the prompt: then nothing of a reply is shown before the tag that closes the thinking.",
    )
    chain: bool = key(
        True,
        "Whether turns are chained by id at the service; if not, each turn sends the whole"
        " conversation and the service is asked to store nothing. For wire responses.",
    )
    prompt_cache: bool = key(
        True,
        "Whether the service is asked to remember the beginning of a request for the turns that"
        " follow. For wire anthropic; the others remember it by themselves.",
    )

    @field_validator("base_url")
    @classmethod
    def _is_address(cls, base_url: str | None, info: ValidationInfo) -> str | None:
        if base_url is None:
            return _needed_by(base_url, info, *_SERVICES)
        if "@" in base_url:
            raise ValueError("must hold no user or password: give the key as api_key")
        address = http_address(base_url)
        for ending in _PATHS:
            if address.path.rstrip("/").endswith(ending):
                raise ValueError(f"must end before {ending}, which is added to it")
        return base_url

    @field_validator("api_key")
    @classmethod
    def _fits_a_header(cls, api_key: SecretStr | None) -> SecretStr | None:
        if api_key is None or not api_key.get_secret_value():
            return api_key
        return header_value(api_key)

    @field_validator("headers")
    @classmethod
    def _one_key(
        cls, headers: Mapping[str, SecretStr], info: ValidationInfo
    ) -> Mapping[str, SecretStr]:
        wire = info.data.get("wire", DEFAULT_WIRE)
        taken = "X-Api-Key" if wire == "anthropic" else "Authorization"
        if info.data.get("api_key") and any(name.lower() == taken.lower() for name in headers):
            raise ValueError(
                f'cannot hold {taken} beside an api_key, which is sent in it; api_key = ""'
                f" keeps {SHARED_KEYS.get(wire, 'any')} out too"
            )
        return headers

    @field_validator("call_mode")
    @classmethod
    def _mode_of_the_wire(cls, mode: CallMode, info: ValidationInfo) -> CallMode:
        wire = info.data.get("wire", DEFAULT_WIRE)
        wires = _MODES.get(mode)
        if wires is not None and wire not in wires:
            raise ValueError(
                f'"{mode}" is not possible with wire = "{wire}", only with {", ".join(wires)}:'
                ' leave it out, which means "native"'
            )
        return mode

    @field_validator("extra_body")
    @classmethod
    def _fits_the_mode(
        cls, fields: Mapping[str, JsonValue], info: ValidationInfo
    ) -> Mapping[str, JsonValue]:
        mode = info.data.get("call_mode", "native")
        own = {"native": frozenset[str](), "text": _CALL_FIELDS}
        if taken := sorted(fields.keys() & own.get(mode, _CALL_FIELDS | _FORM_FIELDS)):
            raise ValueError(f'cannot hold {taken[0]} with call_mode = "{mode}": leave it out')
        return fields

    @field_validator("recover_text_calls")
    @classmethod
    def _reads_what_it_asks_for(cls, recovers: bool, info: ValidationInfo) -> bool:
        if not recovers and info.data.get("call_mode") == "text":
            raise ValueError(
                'must be true with call_mode = "text", which reads calls from texts: leave it out'
            )
        return recovers

    @field_validator("model")
    @classmethod
    def _model_at_a_service(cls, model: str | None, info: ValidationInfo) -> str | None:
        return _needed_by(model, info, *_SERVICES)

    @field_validator("script")
    @classmethod
    def _script_for_scripted(cls, script: Path | None, info: ValidationInfo) -> Path | None:
        return _needed_by(script, info, "scripted")


def _needed_by(value: _T | None, info: ValidationInfo, *wires: Wire) -> _T | None:
    wire = info.data.get("wire")
    if value is None and wire in wires:
        raise ValueError(f'wire = "{wire}" {NEEDS_IT}')
    return value
