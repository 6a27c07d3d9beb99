"""Writes the body of a Responses request, byte for byte the same for the same input (TS-11).

What to leave out because a service refuses it, the chain included, is decided in ``http``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import ModelRequest
from session_runtime.models.content import has_image, plain_text
from session_runtime.models.faults import RefusedError
from session_runtime.models.http_body import (
    Body,
    OptionalField,
    body_pieces,
    known_by_name,
    readable_arguments,
    sent_schema,
    to_json,
)
from session_runtime.models.images import sent_url
from session_runtime.models.memo import SpecMemo, TextMemo
from session_runtime.models.places import Called, Reasoning, Said
from session_runtime.models.responses_items import kept_items
from session_runtime.registry.deprecation import Shown, described, shown
from session_runtime.registry.names import WireNames
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Content, ImagePart, Message, TextPart, ToolCall

CHAIN: Final = "previous_response_id"
_REASONING: Final = "encrypted reasoning"
_INCLUDE: Final = "include"
_STORE: Final = "store"
_FORM: Final = "text"
_REFUSALS: Final = frozenset({400, 404, 422})
_ABSENT: Final = r"\b(?:no|not|missing|unknown|without|expired)\b"
_LOST: Final = r"\b(?:response|(?:tool|function)[_ ](?:call|output)\w*)\b"
_ABOUT_CHAIN: Final = re.compile(
    r"previous[_ ]response|response_not_found|(?<![\w.-])store(?![\w.-])"
    rf"|{_ABSENT}[^\"]{{0,60}}{_LOST}|{_LOST}[^\"]{{0,120}}{_ABSENT}",
    re.IGNORECASE,
)
_ABOUT_OTHER: Final = re.compile(
    r"\bmodel\b[^\"]{0,60}\bnot (?:exist|found)|model_not_found|invalid schema|invalid_function"
    r"|api.?key|authenticat|unauthori[sz]|permission|content.?(?:policy|filter)|moderation"
    r"|max_output_tokens|temperature",
    re.IGNORECASE,
)
_ABOUT_REASONING: Final = re.compile(
    r"encrypted[_ ]content|\breasoning\b[^\"]{0,60}\bitem|\brs_\w", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Chain:
    """What one turn hands to the next; None for the id means that turns are not chained (any more).

    ``covered`` messages are known at the service under ``response_id``, the last of them with ``calls``;
    ``renamed`` gives the service's id of a call where ours differs; ``left_out`` are the fields that it
    refused during this ask.
    """

    response_id: str | None = None
    covered: int = 0
    renamed: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    calls: tuple[str, ...] = ()

    def leads_to(self, messages: Sequence[Message]) -> bool:
        """Whether the service knows the last answer as it stands here: with no call that it did not make."""
        answer = messages[self.covered - 1 : self.covered]
        return all(tuple(call.id for call in each.tool_calls) == self.calls for each in answer)


class ResponsesBodyWriter:
    """Writes the bodies of one profile; each tool is serialised once per generation.

    ``origin`` names the service and the model that kept reasoning must come from.
    """

    def __init__(self, profile: ModelProfile, origin: str) -> None:
        self._profile = profile
        self._origin = origin
        self._tools: SpecMemo[Shown, bytes] = SpecMemo(_tool)
        self._instructions = TextMemo(to_json)

    def write(self, request: ModelRequest, chain: Chain, left_out: Set[str]) -> Body:
        """The body of one turn without the fields in ``left_out``.

        Without ``CHAIN`` it is the whole conversation, which the service is asked not to store.
        """
        known = CHAIN not in left_out and chain.leads_to(request.messages)
        previous = chain.response_id if known else None
        new = request.messages if previous is None else request.messages[chain.covered :]
        renamed = {} if previous is None else chain.renamed
        origin = None if _REASONING in left_out else self._origin
        items = [
            item for message in new for item in _items(message, request.names, renamed, origin)
        ]
        settings = self._settings(left_out)
        if request.form is not None and _FORM not in left_out:
            form = {"type": "json_schema", "name": "reply", "schema": request.form, "strict": False}
            settings[_FORM] = {"format": form}
        if previous is not None:
            settings[CHAIN] = previous
        instructions = _instructions(request.messages)
        written = {"instructions": self._instructions.get(instructions)} if instructions else {}
        tools = (self._tools.get(spec, shown(spec, request.names)) for spec in request.tools)
        fields = {**settings, **self._profile.extra_body}
        pieces = body_pieces(fields, written, tools, "input", map(to_json, items))
        return Body(pieces, tuple(_optional(settings, items, previous, left_out)))

    def _settings(self, left_out: Set[str]) -> dict[str, Any]:
        profile = self._profile
        settings: dict[str, Any] = {"model": profile.model}
        if profile.temperature is not None:
            settings["temperature"] = profile.temperature
        if profile.max_output_tokens is not None:
            settings["max_output_tokens"] = profile.max_output_tokens
        if profile.stream:
            settings["stream"] = True
        if _STORE not in left_out:
            settings[_STORE] = CHAIN not in left_out
        if _INCLUDE not in left_out:
            settings[_INCLUDE] = ["reasoning.encrypted_content"]
        return settings


def _optional(
    settings: Mapping[str, Any],
    items: Sequence[Mapping[str, Any]],
    previous: str | None,
    left_out: Set[str],
) -> Iterable[OptionalField]:
    if CHAIN not in left_out:
        yield OptionalField(CHAIN, partial(_refuses_chain, previous), for_good=False)
    if any(item["type"] == "reasoning" for item in items):
        yield OptionalField(_REASONING, _refuses_reasoning, for_good=False)
    if _INCLUDE in settings:
        yield known_by_name(_INCLUDE, "reasoning.encrypted_content")
    if _FORM in settings:
        yield known_by_name(_FORM, "text.format", "json_schema")
    if settings.get(_STORE) is False:
        yield known_by_name(_STORE)
    if previous is not None:
        yield OptionalField(CHAIN, _may_refuse_chain, for_good=False)


def _refuses_chain(previous: str | None, refusal: RefusedError) -> bool:
    """Services say it by the field, by a lost response, or by a call and an output without each other."""
    if refusal.status not in _REFUSALS:
        return False
    if previous is None:
        return refusal.names(_STORE)
    return refusal.names(previous) or _ABOUT_CHAIN.search(refusal.said) is not None


def _may_refuse_chain(refusal: RefusedError) -> bool:
    """Some services refuse a chain without a word about it: all but a clear other reason counts."""
    return refusal.status in _REFUSALS and _ABOUT_OTHER.search(refusal.said) is None


def _refuses_reasoning(refusal: RefusedError) -> bool:
    return refusal.status in _REFUSALS and _ABOUT_REASONING.search(refusal.said) is not None


def _tool(spec: ToolSpec, as_shown: Shown) -> bytes:
    return to_json(
        {
            "type": "function",
            "name": as_shown.name,
            "description": described(spec, as_shown.instead),
            "parameters": sent_schema(spec.parameters),
            "strict": False,
        }
    )


def _instructions(messages: Iterable[Message]) -> str:
    """All system messages, wherever they stand: a chain does not remember them."""
    texts = (plain_text(message.content) for message in messages if message.role == "system")
    return "\n\n".join(text for text in texts if text)


def _items(
    message: Message, names: WireNames, renamed: Mapping[str, str], origin: str | None
) -> Iterable[dict[str, Any]]:
    match message.role:
        case "system":
            return ()
        case "user":
            return [{"type": "message", "role": "user", "content": _parts(message.content)}]
        case "assistant":
            return _answer(message, names, origin)
        case "tool":
            call_id = message.tool_call_id or ""
            return [
                {
                    "type": "function_call_output",
                    "call_id": renamed.get(call_id, call_id),
                    "output": _output(message.content),
                }
            ]


def _answer(message: Message, names: WireNames, origin: str | None) -> list[dict[str, Any]]:
    """Text and calls of an answer, in their old places among its reasoning if that was kept.

    Reasoning that nothing follows is left out: services want to see what it led to.
    """
    places = kept_items(message.extra, origin) if origin is not None else ()
    text, calls = plain_text(message.content), [_call(call, names) for call in message.tool_calls]
    pieces = sum(isinstance(place, Said) for place in places)
    items: list[dict[str, Any]] = []
    for place in places:
        match place:
            case Reasoning(item):
                items.append(dict(item))
            case Said(characters, phase):
                pieces -= 1
                cut = characters if pieces else len(text)
                items += _said(text[:cut], phase)
                text = text[cut:]
            case Called():
                items += calls[:1]
                del calls[:1]
    items += [*_said(text, None), *calls]
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items


def _said(text: str, phase: str | None) -> list[dict[str, Any]]:
    if not text:
        return []
    content = [{"type": "output_text", "text": text}]
    said = {"type": "message", "role": "assistant", "content": content}
    return [said if phase is None else {**said, "phase": phase}]


def _call(call: ToolCall, names: WireNames) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": names.encode(call.name),
        "arguments": readable_arguments(call.arguments),
    }


def _output(content: Content | None) -> str | list[dict[str, Any]]:
    return _parts(content) if has_image(content) else plain_text(content)


def _parts(content: Content | None) -> list[dict[str, Any]]:
    if content is None or isinstance(content, str):
        return [{"type": "input_text", "text": content or ""}]
    return [_part(part) for part in content]


def _part(part: TextPart | ImagePart) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"type": "input_text", "text": text}
        case ImagePart(url, detail):
            return {"type": "input_image", "image_url": sent_url(url), "detail": detail or "auto"}
