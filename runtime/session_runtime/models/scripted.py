"""Plays replies from a file: a player for tests and demonstrations, not a language model.

It keeps no state: what comes next follows from the messages alone, so that asks cannot disturb each
other and a replay says the same.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from session_runtime.config.json_faults import json_faults
from session_runtime.errors import ConfigError, PermanentError, Problem, TransientError
from session_runtime.models.base import ModelReply, ModelRequest, OnText
from session_runtime.models.deltas import emit
from session_runtime.models.question import question_of, turn_of
from session_runtime.registry.names import WireNames
from session_runtime.types import ToolCall

_MAX_SHOWN_CHARS: Final = 60


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class ScriptedCall(_Part):
    """A tool call; ``arguments`` given as text are sent as they stand, broken ones included."""

    name: str
    arguments: Mapping[str, JsonValue] | str = Field(default_factory=dict)


class ScriptedFault(_Part):
    """A failure instead of a reply; a transient one invites another attempt, which fails alike."""

    code: str = "model.scripted"
    message: str = "the script says so"
    transient: bool = False
    retry_after_s: float | None = None


class ScriptedReply(_Part):
    """One reply: ``text``, ``calls`` or both; or ``error`` alone."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    error: ScriptedFault | None = None

    @model_validator(mode="after")
    def _error_alone(self) -> "ScriptedReply":
        if self.error is not None and (self.text or self.calls):
            raise ValueError("a reply with an error has neither text nor calls")
        return self


class Scene(_Part):
    """Replies to questions that hold the words of ``match``, whatever their case."""

    match: str
    replies: tuple[ScriptedReply, ...]


class Script(_Part):
    """A whole file: the first scene whose ``match`` is in the question is played, else ``replies``."""

    replies: tuple[ScriptedReply, ...] = ()
    scenes: tuple[Scene, ...] = ()

    def replies_to(self, question: str) -> tuple[ScriptedReply, ...]:
        """The replies to be played for a question, in order."""
        asked = question.casefold()
        matching = (scene.replies for scene in self.scenes if scene.match.casefold() in asked)
        return next(matching, self.replies)


def read_script(path: Path, key: str) -> Script:
    """Read a script from a JSON file that ``key`` of the configuration names.

    Raises ConfigError with every fault, each with the key, the file, and the place in the file.
    """
    try:
        if path.exists() and not path.is_file():
            raise ConfigError([Problem(f"{path} is no plain file", key)])
        return Script.model_validate_json(path.read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError([Problem(f"{path} cannot be read: {reason}", key)]) from error
    except ValidationError as error:
        faults = json_faults(error, Script)
        raise ConfigError(Problem(f"{path}: {fault}", key) for fault in faults) from error


class ScriptedModel:
    """Answers with the reply whose number is the count of assistant messages since the question.

    A script that has no such reply raises PermanentError ``model.script_ended`` saying so.
    """

    def __init__(self, script: Script) -> None:
        self._script = script

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Play the reply that is due; see ``Model`` for what it raises."""
        question = question_of(request.messages)
        replies = self._script.replies_to(question)
        number = sum(message.role == "assistant" for message in turn_of(request.messages))
        if number >= len(replies):
            raise PermanentError(
                f"the script has {len(replies)} replies to {question[:_MAX_SHOWN_CHARS]!r} and "
                f"reply {number + 1} is asked for: add it, or end the ask earlier",
                code="model.script_ended",
            )
        played = replies[number]
        if played.error is not None:
            raise _fault(played.error)
        emit(played.text, on_text)
        earlier = sum(len(message.tool_calls) for message in request.messages)
        calls = tuple(
            _call(call, f"call_{earlier + position}", request.names)
            for position, call in enumerate(played.calls)
        )
        return ModelReply(played.text, calls, finish_reason="tool_calls" if calls else "stop")

    async def aclose(self) -> None:
        """Nothing to close."""


def _call(call: ScriptedCall, call_id: str, names: WireNames) -> ToolCall:
    arguments: Any = call.arguments
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(call_id, names.decode(call.name), arguments)


def _fault(fault: ScriptedFault) -> TransientError | PermanentError:
    if fault.transient:
        return TransientError(fault.message, code=fault.code, retry_after_s=fault.retry_after_s)
    return PermanentError(fault.message, code=fault.code)
