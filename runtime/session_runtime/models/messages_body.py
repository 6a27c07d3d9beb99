"""Writes the body of a Messages request, byte for byte the same for the same input (TS-11).

What to leave out because a service refuses it is decided in ``http``.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import ModelRequest
from session_runtime.models.content import IMAGE_NOTE, has_image, plain_text
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
from session_runtime.models.images import inline_image, is_data
from session_runtime.models.memo import SpecMemo, TextMemo
from session_runtime.models.messages_blocks import kept_blocks
from session_runtime.models.parameter_names import ParameterNames
from session_runtime.models.places import Called, Reasoning, Said
from session_runtime.registry.deprecation import Shown, described, shown
from session_runtime.registry.names import WireNames
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Content, ImagePart, Message, TextPart, ToolCall

OPENING: Final = "(The conversation goes on.)"
"""What the user says first where a history begins with an answer: services insist on a user."""

DEFAULT_MAX_TOKENS: Final = 8192
SMALLEST_MAX_TOKENS: Final = 4096
"""What is asked for where a model refuses the default: all of them write that much."""

_CACHE: Final = "cache_control"
_THOUGHTS: Final = "kept thoughts"
_MAX_TOKENS: Final = "max_tokens"
_MARK: Final = {_CACHE: {"type": "ephemeral"}}
_REFUSALS: Final = frozenset({400, 422})
_ABOUT_THOUGHTS: Final = re.compile(r"\bthinking\b|\bsignature\b", re.IGNORECASE)
_FITTING_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

Block = dict[str, Any]


class BlockMemo:
    """The blocks of one ask's messages as they were made last: most messages are sent again in each turn."""

    def __init__(self) -> None:
        self._made_as: tuple[WireNames, str | None] | None = None
        self._made: list[tuple[Message, list[Block]]] = []

    def of(
        self,
        messages: Sequence[Message],
        made_as: tuple[WireNames, str | None],
        make: Callable[[Message], list[Block]],
    ) -> list[tuple[Message, list[Block]]]:
        """All messages with their blocks; what is the same object under the same names is known."""
        known = self._made if self._made_as == made_as else []
        pairs = zip(known, messages, strict=False)
        begin = [each for each, _ in takewhile(lambda pair: pair[0][0] is pair[1], pairs)]
        rest = [(message, make(message)) for message in messages[len(begin) :]]
        self._made_as, self._made = made_as, [*begin, *rest]
        return self._made


class MessagesBodyWriter:
    """Writes the bodies of one profile; each tool is serialised once per generation.

    ``origin`` names the service and the model that kept thoughts must come from. The service remembers the
    beginning of a request up to the places that are marked: the tools of the first turn, the system text,
    the last message.
    """

    def __init__(self, profile: ModelProfile, origin: str) -> None:
        self._profile = profile
        self._origin = origin
        self._names: SpecMemo[None, ParameterNames] = SpecMemo(_parameter_names)
        self._tools: SpecMemo[Shown, bytes] = SpecMemo(self._tool)
        self._marked: SpecMemo[Shown, bytes] = SpecMemo(self._marked_tool)
        self._prompts = TextMemo(_prompt)
        self._marked_prompts = TextMemo(_marked_prompt)

    def write(
        self,
        request: ModelRequest,
        first_tools: int,
        left_out: Set[str],
        memo: BlockMemo | None = None,
    ) -> Body:
        """The whole body without the fields in ``left_out``; the first turn had ``first_tools`` tools.

        ``memo`` is what this ask has written.
        """
        caches = self._profile.prompt_cache and _CACHE not in left_out
        origin = None if _THOUGHTS in left_out else self._origin
        turns = self._turns(request, origin, memo or BlockMemo())
        settings = {**self._settings(left_out), **self._profile.extra_body}
        if caches and turns and turns[-1]["role"] == "user":
            turns[-1]["content"][-1] = {**turns[-1]["content"][-1], **_MARK}
        marked = first_tools - 1 if caches else -1
        tools = (
            (self._marked if at == marked else self._tools).get(spec, shown(spec, request.names))
            for at, spec in enumerate(request.tools)
        )
        system = self._system(request.messages, caches=caches)
        pieces = body_pieces(settings, system, tools, "messages", map(to_json, turns))
        return Body(pieces, tuple(self._optional(turns, left_out, caches=caches)))

    def own_arguments(
        self, request: ModelRequest, calls: Iterable[ToolCall]
    ) -> tuple[ToolCall, ...]:
        """Calls with their arguments under the names that each tool has for its parameters."""
        specs = _specs(request)
        return tuple(
            replace(call, arguments=self._names.get(spec, None).own(call.arguments))
            if (spec := specs.get(call.name)) is not None
            else call
            for call in calls
        )

    def _settings(self, left_out: Set[str]) -> dict[str, Any]:
        profile = self._profile
        default = SMALLEST_MAX_TOKENS if _MAX_TOKENS in left_out else DEFAULT_MAX_TOKENS
        settings: dict[str, Any] = {
            "model": profile.model,
            _MAX_TOKENS: profile.max_output_tokens or default,
        }
        if profile.temperature is not None:
            settings["temperature"] = profile.temperature
        if profile.stream:
            settings["stream"] = True
        return settings

    def _system(self, messages: Iterable[Message], *, caches: bool) -> dict[str, bytes]:
        """The field with all system messages, wherever they stand: there is one place for them."""
        texts = (plain_text(message.content) for message in messages if message.role == "system")
        text = "\n\n".join(text for text in texts if text.strip())
        if not text:
            return {}
        prompts = self._marked_prompts if caches else self._prompts
        return {"system": prompts.get(text)}

    def _optional(
        self, turns: Sequence[Block], left_out: Set[str], *, caches: bool
    ) -> Iterable[OptionalField]:
        if caches:
            yield known_by_name(_CACHE)
        if any(_is_thought(block) for turn in turns for block in turn["content"]):
            yield OptionalField(_THOUGHTS, _refuses_thoughts, for_good=False)
        if self._profile.max_output_tokens is None and _MAX_TOKENS not in left_out:
            yield OptionalField(_MAX_TOKENS, _refuses_max_tokens)

    def _tool(self, spec: ToolSpec, as_shown: Shown) -> bytes:
        return to_json(self._described(spec, as_shown))

    def _marked_tool(self, spec: ToolSpec, as_shown: Shown) -> bytes:
        return to_json(self._described(spec, as_shown) | _MARK)

    def _described(self, spec: ToolSpec, as_shown: Shown) -> Block:
        names = self._names.get(spec, None)
        return {
            "name": as_shown.name,
            "description": described(spec, as_shown.instead),
            "input_schema": names.schema(sent_schema(spec.parameters)),
        }

    def _turns(self, request: ModelRequest, origin: str | None, memo: BlockMemo) -> list[Block]:
        """Users and assistants in turn, each turn with all that one of them said; a user begins."""
        specs = _specs(request)

        def call(call: ToolCall) -> Block:
            return self._call(call, request.names, specs.get(call.name))

        def make(message: Message) -> list[Block]:
            return _blocks(message, call, origin)

        turns: list[Block] = []
        for message, blocks in memo.of(request.messages, (request.names, origin), make):
            role = "assistant" if message.role == "assistant" else "user"
            if not blocks:
                continue
            if turns and turns[-1]["role"] == role:
                turns[-1]["content"] += blocks
            else:
                turns.append({"role": role, "content": [*blocks]})
        if turns and turns[0]["role"] == "assistant":
            turns.insert(0, {"role": "user", "content": [{"type": "text", "text": OPENING}]})
        _end_without_blanks(turns)
        return turns

    def _call(self, call: ToolCall, names: WireNames, spec: ToolSpec | None) -> Block:
        arguments = _input(call.arguments)
        if spec is not None:
            arguments = dict(self._names.get(spec, None).sent(arguments))
        return {
            "type": "tool_use",
            "id": fitting_id(call.id),
            "name": names.encode(call.name),
            "input": arguments,
        }


def fitting_id(call_id: str) -> str:
    """The id of a call as the service takes it; other services give ids that it refuses."""
    if _FITTING_ID.fullmatch(call_id):
        return call_id
    return "call_" + hashlib.blake2b(call_id.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _parameter_names(spec: ToolSpec, form: None) -> ParameterNames:
    del form
    return ParameterNames(sent_schema(spec.parameters))


def _specs(request: ModelRequest) -> dict[str, ToolSpec]:
    return {spec.name: spec for spec in request.tools}


def _refuses_thoughts(refusal: RefusedError) -> bool:
    return refusal.status in _REFUSALS and _ABOUT_THOUGHTS.search(refusal.said) is not None


def _refuses_max_tokens(refusal: RefusedError) -> bool:
    return refusal.status in _REFUSALS and refusal.names(_MAX_TOKENS)


def _is_thought(block: Block) -> bool:
    return block["type"] in {"thinking", "redacted_thinking"}


def _prompt(text: str) -> bytes:
    return to_json([{"type": "text", "text": text}])


def _marked_prompt(text: str) -> bytes:
    return to_json([{"type": "text", "text": text} | _MARK])


def _blocks(message: Message, call: Callable[[ToolCall], Block], origin: str | None) -> list[Block]:
    match message.role:
        case "system":
            return []
        case "user":
            return _parts(message.content)
        case "assistant":
            return _answer(message, call, origin)
        case "tool":
            return [_result(message)]


def _answer(message: Message, call: Callable[[ToolCall], Block], origin: str | None) -> list[Block]:
    """Text and calls of an answer, in their old places among its thoughts if those were kept."""
    places = kept_blocks(message.extra, origin) if origin is not None else ()
    text, calls = plain_text(message.content), [call(each) for each in message.tool_calls]
    pieces = sum(isinstance(place, Said) for place in places)
    blocks: list[Block] = []
    for place in places:
        match place:
            case Reasoning(item):
                blocks.append(dict(item))
            case Said(characters):
                pieces -= 1
                cut = characters if pieces else len(text)
                blocks += _text(text[:cut])
                text = text[cut:]
            case Called():
                blocks += calls[:1]
                del calls[:1]
    blocks += [*_text(text), *calls]
    while blocks and _is_thought(blocks[-1]):
        blocks.pop()
    return blocks


def _result(message: Message) -> Block:
    """The result of a call; services refuse a failure that says nothing."""
    result = {"type": "tool_result", "tool_use_id": fitting_id(message.tool_call_id or "")}
    text = plain_text(message.content)
    shown = _parts(message.content) if has_image(message.content) else text
    if not text.strip():
        return result
    return {**result, "content": shown, **({"is_error": True} if message.is_error else {})}


def _parts(content: Content | None) -> list[Block]:
    if content is None or isinstance(content, str):
        return _text(content or "")
    return [block for part in content for block in _part(part)]


def _part(part: TextPart | ImagePart) -> list[Block]:
    match part:
        case TextPart(text):
            return _text(text)
        case ImagePart(url):
            return [_image(url)]


def _image(url: str) -> Block:
    """An image by address or as base64; a note for data that is none, which the service would refuse."""
    inline = inline_image(url)
    if inline is not None:
        data = {"type": "base64", "media_type": inline.media_type, "data": inline.data}
        return {"type": "image", "source": data}
    if is_data(url):
        return {"type": "text", "text": IMAGE_NOTE}
    return {"type": "image", "source": {"type": "url", "url": url}}


def _text(text: str) -> list[Block]:
    """Services refuse a text of nothing but blanks."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _end_without_blanks(turns: Sequence[Block]) -> None:
    """An answer that the model is to go on with must not end in blanks."""
    if not turns or turns[-1]["role"] != "assistant":
        return
    content = turns[-1]["content"]
    if content[-1]["type"] == "text":
        content[-1] = {**content[-1], "text": content[-1]["text"].rstrip()}


def _input(arguments: str) -> Block:
    """Arguments as an object, whatever a model wrote."""
    given = json.loads(readable_arguments(arguments), parse_constant=str, parse_float=_finite)
    return given if isinstance(given, dict) else {}


def _finite(number: str) -> float | str:
    """A number that JSON can hold; what is too large for one stays text."""
    return value if math.isfinite(value := float(number)) else number
