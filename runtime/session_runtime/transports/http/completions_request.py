"""Reads a request in the form of OpenAI's chat completions, and decides what becomes of each field.

A field is used, or named as ignored where that does no harm, or refused where ignoring it would be a lie.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from types import MappingProxyType
from typing import Final

from session_runtime.ask.lengths import chars_of_request
from session_runtime.types import AskRequest, Message, TextPart
from session_runtime.wire.fields import Fields, raise_if_any
from session_runtime.wire.incoming import read_request

EXTENSION: Final = "session_runtime"
"""The field of requests and answers under which stands what OpenAI has no field for."""

USED: Final = ("messages", "model", "stream", "stream_options", "user", "metadata", EXTENSION)
OF_EXTENSION: Final = (
    "identity",
    "conversation",
    "deadline_s",
    "silent",
    "confirmations",
    "declined",
)
IGNORED: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "seed",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "verbosity",
    "parallel_tool_calls",
    "prediction",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
)
"""How the model is spoken to is up to its profile; an answer names those of these that were sent."""

_OWN_TOOLS: Final = "the daemon calls tools of its own and cannot hand calls to you"
_TEXT_ONLY: Final = "answers are text"
REFUSED: Final[Mapping[str, tuple[tuple[object, ...], str]]] = MappingProxyType(
    {
        "tools": (([],), _OWN_TOOLS),
        "tool_choice": (("auto",), _OWN_TOOLS),
        "functions": (([],), _OWN_TOOLS),
        "function_call": (("auto",), _OWN_TOOLS),
        "n": ((1,), "there is one answer to a question"),
        "stop": (([], ""), "the model is not stopped at words of yours"),
        "response_format": (({"type": "text"},), "answers cannot be held to a format"),
        "modalities": ((["text"],), _TEXT_ONLY),
        "audio": ((), _TEXT_ONLY),
        "logit_bias": (({},), "what the model prefers cannot be changed"),
        "logprobs": ((False,), "probabilities are not told"),
        "top_logprobs": ((0,), "probabilities are not told"),
        "store": ((False,), "no answer is kept"),
        "moderation": ((), "nothing is moderated"),
        "web_search_options": ((), "what may be searched is up to the daemon's tools"),
    }
)
"""Per field the values that ask for nothing, and why others are refused."""

_STREAM_OPTIONS: Final = ("include_usage", "include_obfuscation")
_NO_QUESTION: Final = "the last message must be of role user: it is the question"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request comes to: an ask, how it is to be answered, and which fields were ignored."""

    asked: AskRequest
    chars: int
    stream: bool
    include_usage: bool
    ignored: tuple[str, ...]


def completion_from_json(data: object) -> Wanted:
    """Read a request from parsed JSON; raises RequestError that lists every problem."""
    problems: list[str] = []
    fields = Fields(data, "", problems)
    fields.refuse_unknown((*USED, *IGNORED, *REFUSED))
    _refuse(fields)
    stream = fields.flag("stream")
    include_usage = _include_usage(fields, stream)
    asked = _arranged(_ask(fields), fields)
    raise_if_any(problems)
    ignored = tuple(name for name in IGNORED if fields.data.get(name) is not None)
    return Wanted(asked, chars_of_request(asked), stream, include_usage, ignored)


def _refuse(fields: Fields) -> None:
    for name, (neutral, why) in REFUSED.items():
        value = fields.data.get(name)
        if value is not None and not any(_is_same(value, each) for each in neutral):
            fields.complain(name, f"is not supported, as {why}; leave it out")


def _is_same(value: object, other: object) -> bool:
    return type(value) is type(other) and value == other


def _include_usage(fields: Fields, stream: bool) -> bool:
    given = fields.data.get("stream_options")
    if given is None:
        return False
    options = Fields(given, "stream_options", fields.problems)
    options.refuse_unknown(_STREAM_OPTIONS)
    if not stream:
        fields.complain("stream_options", "is for streams: set stream to true, or leave it out")
    return options.flag("include_usage")


def _ask(fields: Fields) -> AskRequest:
    """The ask, all messages still in one row."""
    if fields.data.get("messages") in (None, []):
        fields.complain("messages", "is missing or empty: give the conversation, the question last")
    own = fields.data.get(EXTENSION)
    extension = Fields({} if own is None else own, EXTENSION, fields.problems)
    extension.refuse_unknown(OF_EXTENSION)
    messages = fields.data.get("messages")
    plain = {
        **{name: extension.data.get(name) for name in OF_EXTENSION},
        "identity": _identity(fields, extension),
        "model": fields.data.get("model"),
        "metadata": fields.data.get("metadata"),
        "messages": [*map(_plain, messages)] if isinstance(messages, list) else messages,
    }
    return read_request(Fields(plain, "", fields.problems))


def _identity(fields: Fields, extension: Fields) -> object:
    """The identity that is stated in the extension, its user in the field that OpenAI has for that."""
    user, identity = fields.data.get("user"), extension.data.get("identity")
    if user is None or not isinstance(identity, dict | None):
        return identity
    if identity is not None and identity.get("user") not in (None, user):
        fields.complain("user", f"is not the one that {EXTENSION}.identity states; give it once")
    return {**(identity or {}), "user": user}


def _plain(message: object) -> object:
    """A message as asks have them: what OpenAI calls or spells otherwise, and nothing that is null."""
    if not isinstance(message, dict):
        return message
    plain = {name: value for name, value in message.items() if value is not None}
    if plain.get("role") == "developer":
        plain["role"] = "system"
    refusal = plain.pop("refusal", None)
    if refusal is not None and "content" not in plain:
        plain["content"] = refusal
    if isinstance(plain.get("content"), list):
        plain["content"] = [_part(part) for part in plain["content"]]
    return plain


def _part(part: object) -> object:
    if isinstance(part, dict) and part.get("type") == "refusal":
        return {"type": "text", "text": part.get("refusal")}
    return part


def _arranged(asked: AskRequest, fields: Fields) -> AskRequest:
    """Split the row: system messages at its head are instructions, what follows the last answer is asked."""
    row = asked.messages
    head = list(takewhile(lambda text: text is not None, map(_instruction, row)))
    rest = row[len(head) :]
    answered = [at for at, message in enumerate(rest) if message.role in ("assistant", "tool")]
    split = answered[-1] + 1 if answered else 0
    if not fields.problems and not _is_question(rest[split:]):
        fields.complain("messages", _NO_QUESTION)
    instructions = "\n\n".join(text for text in head if text)
    return replace(
        asked,
        instructions=instructions or None,
        history=rest[:split],
        messages=rest[split:],
    )


def _instruction(message: Message) -> str | None:
    """The text of a system message; None of any other, and of one that is not text alone."""
    if message.role != "system":
        return None
    match message.content:
        case None | str():
            return message.content or ""
        case parts:
            texts = [part.text for part in parts if isinstance(part, TextPart)]
            return "\n".join(texts) if len(texts) == len(parts) else None


def _is_question(messages: Sequence[Message]) -> bool:
    return any(message.role == "user" and message.content for message in messages)
