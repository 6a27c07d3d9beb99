"""The sections about the daemon itself: [runtime], [log], [ask], [trace] and [metrics].

What tools may do is configured in ``tools``, which models answer in ``models``, who may call in ``http``.
"""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, ValidationInfo, field_validator

from session_runtime.config.section import Count, Name, Seconds, Section, Whole, key

DEFAULT_SECRET_SOURCES = (
    "env:*_API_KEY",
    "env:*_TOKEN",
    "env:*_SECRET",
    "env:*_PASSWORD",
    "file:/run/secrets",
)

TRACE_FILE: Final = "trace.jsonl"
_MIB = 1024 * 1024


def _is_source(source: str) -> str:
    kind, _, rest = source.partition(":")
    if not (kind == "env" and rest) and not (kind == "file" and rest.startswith("/")):
        raise ValueError('is neither "env:PATTERN" nor "file:/folder"')
    return source


SecretSource = Annotated[str, AfterValidator(_is_source)]


class RuntimeSettings(Section):
    """The daemon as a whole: its name, where it keeps state, and how much it takes on."""

    name: Name = key(
        "session-runtime", "The name under which this daemon presents itself.", acts="restart"
    )
    state_dir: Path = key(
        Path(".session-runtime"), "Folder for everything the daemon keeps.", acts="restart"
    )
    secret_sources: tuple[SecretSource, ...] = key(
        DEFAULT_SECRET_SOURCES,
        'Where values such as "env:NAME" and "file:/path" may read secrets from: "env:" and a'
        ' pattern of variable names, or "file:" and an absolute folder.',
    )
    max_concurrent_asks: Count = key(
        256,
        "Asks that may run at the same time; further ones are refused as busy.",
        acts="now",
        network=True,
    )
    max_concurrent_asks_per_principal: Count | None = key(
        None,
        "Asks of one principal that may run at the same time; further ones wait for their turn, which goes"
        " round its users. Unset: no bound but the one above.",
        acts="now",
        network=True,
    )
    max_waiting_asks: Whole = key(
        256,
        "Asks of one principal that may wait for their turn; further ones are refused as busy, and for one"
        " user as soon as it has as many waiting as there is room left for.",
        acts="now",
        network=True,
    )
    max_waiting_asks_in_all: Whole = key(
        512,
        "Asks of all principals together that may wait for their turn; further ones are refused as busy,"
        " and for one principal as soon as it has as many waiting as there is room left for.",
        acts="now",
        network=True,
    )
    ask_timeout_s: Seconds = key(300.0, "The longest an ask may take, in seconds.", network=True)
    drain_timeout_s: Seconds = key(
        30.0,
        "How long running asks may go on when the daemon stops, in seconds.",
        acts="now",
        network=True,
    )
    watch: Literal["events", "polling", "off"] = key(
        "events",
        "How edits of the configuration, of the files it names and of handlers are noticed: as the"
        " system tells of them, by looking again and again, or not at all.",
        acts="restart",
    )
    recheck_s: Seconds = key(
        5.0,
        "How often all of that is looked at although no edit was noticed, in seconds.",
        acts="restart",
    )


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
    system_prompt: str = key("", "The first system message of every ask.", network=True)
    prompt_file: Path | None = key(
        None, "A UTF-8 file that holds the system prompt, instead of system_prompt."
    )
    conversations: Literal["queue", "cancel_previous", "parallel"] = key(
        "queue",
        "What becomes of an ask whose conversation has another one: it waits for it, cancels it, or runs"
        " beside it.",
        network=True,
    )
    require_end: bool = key(
        False, "Whether the model must finish by calling the tool end instead of with plain text."
    )
    missing_tool_call_retries: Whole = key(
        3,
        "How often the model is reminded when it should have called a tool and did not.",
        network=True,
    )
    max_steps: Count = key(
        32, "The most model turns of an ask, those of its sub-agents among them.", network=True
    )
    max_tool_calls: Count = key(64, "The most tool calls of an ask.", network=True)
    max_total_tokens: Whole = key(
        0, "The most tokens of an ask, in and out; 0 means no limit.", network=True
    )
    history_tokens: Count | None = key(
        None,
        "The most tokens of the history that comes with a request, estimated as characters over four. Of"
        " more, old tool results become short, then the oldest turns are left out. Unset: as many as the"
        " profile's context_window has room for, or any number if that is unset too.",
        network=True,
    )
    max_result_chars: Count = key(
        20_000,
        "The longest tool result the model is shown, in characters. Of a longer one it gets a summary"
        " and a reference that results.read reads in parts; under 500 it gets the beginning only.",
        network=True,
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
        Path(TRACE_FILE),
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


class MetricsSettings(Section):
    """The numbers that a monitoring system reads from GET /metrics."""

    enabled: bool = key(
        True,
        "Whether they are there; if not, nothing is at /metrics. The console and the traces need them not.",
        acts="restart",
    )
