"""Writes how an ask went as OpenAI's chat completions have it: one object, or pieces of a stream."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from session_runtime.transports.http.completions_request import EXTENSION, Wanted
from session_runtime.types import AskResult, PendingCall, Usage
from session_runtime.wire import printable, result_to_json

DONE: Final = b"data: [DONE]\n\n"
BREAK: Final = "\n\n"
"""Stands between the messages that were sent, and before the final text."""

FinishReason = Literal["stop", "length", "content_filter"]

_TOLD_ELSEWHERE: Final = ("new_messages", "usage")


@dataclass(frozen=True, slots=True)
class Heading:
    """What all objects of an answer begin with; ``created`` in seconds since 1970."""

    ask_id: str
    created: int
    model: str


def completion(heading: Heading, result: AskResult, wanted: Wanted) -> dict[str, Any]:
    """The whole answer: what was sent while the ask ran, then the final text, then what waits."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content(result), "refusal": None},
        "logprobs": None,
        "finish_reason": finish_reason(result),
    }
    return {
        **_begun(heading, "chat.completion"),
        "choices": [choice],
        "usage": usage(result.usage),
        EXTENSION: extension(result, wanted),
    }


def chunk(
    heading: Heading, delta: dict[str, Any], wanted: Wanted, ended: AskResult | None = None
) -> dict[str, Any]:
    """A piece of a stream; the last one with a choice tells how the ask ``ended``."""
    choice = {
        "index": 0,
        "delta": delta,
        "logprobs": None,
        "finish_reason": None if ended is None else finish_reason(ended),
    }
    data = {**_begun(heading, "chat.completion.chunk"), "choices": [choice]}
    if wanted.include_usage:
        data["usage"] = None
    if ended is not None:
        data[EXTENSION] = extension(ended, wanted)
    return data


def usage_chunk(heading: Heading, used: Usage) -> dict[str, Any]:
    """The piece after the last one with a choice, for those who want it."""
    return {**_begun(heading, "chat.completion.chunk"), "choices": [], "usage": usage(used)}


def content(result: AskResult) -> str:
    """What a person should read, in one text."""
    parts = (*result.messages, result.text, waiting(result.pending))
    return BREAK.join(part for part in parts if part)


def waiting(pending: Sequence[PendingCall]) -> str:
    """What waits for a person, in words, with all of the arguments; the tokens stay out of it."""
    if not pending:
        return ""
    lines = [f"- {call.tool} {_shown(call)}" for call in pending]
    what = "This call waits" if len(lines) == 1 else "These calls wait"
    return "\n".join([f"{what} for your consent and did not run:", *lines])


def finish_reason(result: AskResult) -> FinishReason:
    """Whether the model came to an end, or was cut off, by a limit of ours or by its service."""
    if result.outcome == "limit":
        return "length"
    return result.cut_off or "stop"


def extension(result: AskResult, wanted: Wanted) -> dict[str, Any]:
    """What OpenAI has no field for: the result but for its transcript, and what was ignored."""
    told = {
        name: value for name, value in result_to_json(result).items() if name not in _TOLD_ELSEWHERE
    }
    return {**told, "ignored": list(wanted.ignored)}


def usage(used: Usage) -> dict[str, Any]:
    """Tokens of all model calls of the ask together."""
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.total_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
    }


def model_object(name: str, owner: str) -> dict[str, Any]:
    """A profile as a model; when it was made is not known."""
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}


def _begun(heading: Heading, kind: str) -> dict[str, Any]:
    return {
        "id": heading.ask_id,
        "object": kind,
        "created": heading.created,
        "model": heading.model,
    }


def _shown(call: PendingCall) -> str:
    return printable(json.dumps(dict(call.arguments), ensure_ascii=False))
