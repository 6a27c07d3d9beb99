"""The section [models]: one profile per model that may answer. How it is spoken to is in ``models``."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from session_runtime.config.section import Count, Name, Seconds, Section, Whole, key

Wire = Literal["chat", "offline", "scripted"]
_T = TypeVar("_T")
_ADDRESS = re.compile(r"https?://[^/?#\s]+\S*\Z", re.IGNORECASE)

DEFAULT_WIRE: Wire = "chat"

SHARED_KEYS: Mapping[str, str] = MappingProxyType({"chat": "OPENAI_API_KEY"})
"""Per wire, the variable whose key serves the profiles that have none of their own (CFG-2)."""


class ModelProfile(Section):
    """A model, where it is reached, and what it can do."""

    wire: Wire = key(
        DEFAULT_WIRE,
        "How the model is spoken to: chat (a chat completions service), offline (built in, without"
        " a network) or scripted (replies read from a file).",
    )
    base_url: str | None = key(
        None, "Address of the service up to, but without, /chat/completions; for wire chat."
    )
    api_key: SecretStr | None = key(
        None,
        'Key of the service, best as "env:NAME" or "file:/path". Unset: OPENAI_API_KEY serves'
        ' profiles of wire chat; "" sends no key at all.',
    )
    model: Name | None = key(None, "The model's name at the service; for wire chat.")
    context_window: Count | None = key(
        None,
        "How much the model can read, in tokens; unset means unknown, and then"
        " tool_search_threshold_percent has no effect.",
    )
    supports_tool_search: bool = key(
        True, "Whether tool search may be used; if not, the model gets the full list of tools."
    )
    name_separator: Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,8}$")] = key(
        "__", "What stands for the dot of a tool name when the service is spoken to."
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = key(
        None, "How freely the model chooses its words; unset leaves it to the service."
    )
    max_output_tokens: Count | None = key(
        None, "The longest reply, in tokens; unset leaves it to the service."
    )
    timeout_s: Seconds = key(120.0, "The longest wait for a reply, in seconds.")
    max_retries: Whole = key(2, "How often a request that failed for now is sent again.")
    script: Path | None = key(None, "File with the replies; for wire scripted.")
    stream: bool = key(True, "Whether replies are read while they are written.")

    @field_validator("base_url")
    @classmethod
    def _is_address(cls, base_url: str | None, info: ValidationInfo) -> str | None:
        if base_url is None:
            return _needed_by("chat", base_url, info)
        if "@" in base_url:
            raise ValueError("must hold no user or password: give the key as api_key")
        if not _ADDRESS.match(base_url):
            raise ValueError("must be an address that begins with http:// or https://")
        try:
            _ = urlsplit(base_url).port
        except ValueError as error:
            raise ValueError("must name a host and a port up to 65535") from error
        return base_url

    @field_validator("model")
    @classmethod
    def _model_for_chat(cls, model: str | None, info: ValidationInfo) -> str | None:
        return _needed_by("chat", model, info)

    @field_validator("script")
    @classmethod
    def _script_for_scripted(cls, script: Path | None, info: ValidationInfo) -> Path | None:
        return _needed_by("scripted", script, info)


def _needed_by(wire: Wire, value: _T | None, info: ValidationInfo) -> _T | None:
    if value is None and info.data.get("wire") == wire:
        raise ValueError(f'wire = "{wire}" needs it')
    return value
