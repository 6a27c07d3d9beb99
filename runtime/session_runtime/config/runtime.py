"""The sections about the daemon itself: [runtime], [log], [ask], [trace] and [http].

What tools may do is configured in ``tools``, which models answer in ``models``.
"""

import ipaddress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from session_runtime.config.section import Count, Name, Seconds, Section, Whole, key

DEFAULT_SECRET_SOURCES = (
    "env:*_API_KEY",
    "env:*_TOKEN",
    "env:*_SECRET",
    "env:*_PASSWORD",
    "file:/run/secrets",
)

_MIB = 1024 * 1024


class RuntimeSettings(Section):
    """The daemon as a whole: its name, where it keeps state, and how much it takes on."""

    name: Name = key(
        "session-runtime", "The name under which this daemon presents itself.", acts="restart"
    )
    state_dir: Path = key(
        Path(".session-runtime"), "Folder for everything the daemon keeps.", acts="restart"
    )
    secret_sources: tuple[str, ...] = key(
        DEFAULT_SECRET_SOURCES,
        'Where values such as "env:NAME" and "file:/path" may read secrets from: "env:" and a'
        ' pattern of variable names, or "file:" and an absolute folder.',
    )
    max_concurrent_asks: Count = key(
        256, "Asks that may run at the same time; further ones are refused as busy.", acts="now"
    )
    ask_timeout_s: Seconds = key(300.0, "The longest an ask may take, in seconds.")
    drain_timeout_s: Seconds = key(
        30.0, "How long running asks may go on when the daemon stops, in seconds.", acts="now"
    )

    @field_validator("secret_sources")
    @classmethod
    def _are_sources(cls, sources: tuple[str, ...]) -> tuple[str, ...]:
        for source in sources:
            kind, _, rest = source.partition(":")
            if not (kind == "env" and rest) and not (kind == "file" and rest.startswith("/")):
                raise ValueError(f'"{source}" is neither "env:PATTERN" nor "file:/folder"')
        return sources


class LogSettings(Section):
    """What the daemon writes about its work to the standard error stream."""

    level: Literal["debug", "info", "warning", "error"] = key(
        "info", "The least important lines that are written.", acts="now"
    )
    format: Literal["text", "json"] = key(
        "text", "Lines for people (text) or one JSON object per line (json).", acts="now"
    )


class AskSettings(Section):
    """How one ask is carried out, and the limits that end it."""

    default_model: Name | None = key(
        None,
        "The profile of [models] for asks that name none. Unset: the first one of [models], or the"
        " built-in profile offline if there is none.",
    )
    system_prompt: str = key("", "The first system message of every ask.")
    prompt_file: Path | None = key(
        None, "A UTF-8 file that holds the system prompt, instead of system_prompt."
    )
    require_end: bool = key(
        False, "Whether the model must finish by calling the tool end instead of with plain text."
    )
    missing_tool_call_retries: Whole = key(
        3, "How often the model is reminded when it should have called a tool and did not."
    )
    max_steps: Count = key(32, "The most model turns of an ask.")
    max_tool_calls: Count = key(64, "The most tool calls of an ask.")
    max_total_tokens: Whole = key(0, "The most tokens of an ask, in and out; 0 means no limit.")
    max_result_chars: Count = key(
        20_000,
        "The longest tool result the model is shown, in characters. Of a longer one it gets a summary"
        " and a reference that results.read reads in parts; under 500 it gets the beginning only.",
    )

    @field_validator("prompt_file")
    @classmethod
    def _one_prompt(cls, prompt_file: Path | None, info: ValidationInfo) -> Path | None:
        if prompt_file is not None and info.data.get("system_prompt"):
            raise ValueError("ask.system_prompt is given too: remove one of them")
        return prompt_file


class TraceSettings(Section):
    """The record of every ask, one JSON object per line."""

    enabled: bool = key(True, "Whether asks are recorded.", acts="restart")
    path: Path = key(
        Path("trace.jsonl"),
        "The file; unless given, trace.jsonl in runtime.state_dir.",
        acts="restart",
    )
    max_bytes: Count = key(
        64 * _MIB, "The size at which a new file is begun, in bytes.", acts="restart"
    )
    keep: Whole = key(5, "How many earlier files are kept.", acts="restart")
    content: bool = key(
        False,
        "Whether the arguments of tool calls are recorded too, with secrets blacked out.",
    )


class HttpSettings(Section):
    """The HTTP door."""

    host: Name = key(
        "127.0.0.1",
        "The address to listen on. Callers need no key, so it must be a loopback address.",
        acts="restart",
    )
    port: Annotated[int, Field(ge=0, le=65535)] = key(
        8040, "The port to listen on; 0 takes any free one.", acts="restart"
    )
    max_body_bytes: Count = key(
        10 * _MIB, "The largest request body that is read, in bytes.", acts="restart"
    )

    @field_validator("host")
    @classmethod
    def _loopback_only(cls, host: str) -> str:
        if not _is_loopback(host):
            raise ValueError(
                "callers need no key, so only a loopback address is allowed:"
                " 127.0.0.1, ::1 or localhost"
            )
        return host


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
