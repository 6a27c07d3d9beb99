"""Turns the result of a remote call into what a handler could return (RTE-10).

What the model reads of it is decided in ``registry.invoke``.
"""

import binascii
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from session_runtime.errors import ToolError
from session_runtime.handler import Image
from session_runtime.mcp.masking import masked
from session_runtime.registry.invoke.encode import encodable, json_text, least_chars
from session_runtime.registry.invoke.output import Parts
from session_runtime.threads import aside
from session_runtime.types import JsonObject

MAX_ERROR_CHARS: Final = 8_000
MAX_PARTS: Final = 10_000
_QUICK_CHARS: Final = 262_144


@dataclass(frozen=True, slots=True)
class Unusable:
    """A part that cannot be read, and why; it costs none of the others."""

    type: str | None
    why: str


Part = str | dict[str, Any] | Image | bytes | Unusable


async def value_of(result: JsonObject, secrets: Sequence[str] = ()) -> object:
    """Give what a tool returned: data if it is structured, else what its content says.

    One text stays a text, several become one with line ends between; an image becomes an ``Image``, sound
    and the bytes of a resource become bytes. Where there are several parts of different kinds each is
    described in ``Parts``; links and resources are references with their address. Beside data stands what
    is no text, and no text but where the data is empty: mostly it says the same. ``secrets`` are masked in
    all of it. Raises ToolError with the tool's words for a result that is an error, ValueError for one of
    which nothing can be read.
    """
    if least_chars(result, _QUICK_CHARS) <= _QUICK_CHARS:
        return _masked_value(result, secrets)
    return await aside("reading a result", partial(_masked_value, result, secrets))


def _masked_value(result: JsonObject, secrets: Sequence[str]) -> object:
    return _value(masked(result, secrets) if secrets else result)


def _value(result: JsonObject) -> object:
    content, data = result.get("content"), result.get("structuredContent")
    if result.get("isError") is True:
        raise ToolError(_error_text(content, data))
    if content is None and data is not None:
        content = []
    if not isinstance(content, list):
        raise ValueError("it has no content")
    if len(content) > MAX_PARTS:
        raise ValueError(f"it has {len(content)} parts, more than {MAX_PARTS}")
    parts = [_part(block) for block in content]
    return _joined(parts) if data is None else _beside(data, parts)


def _joined(parts: Sequence[Part]) -> object:
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "\n".join(texts)
    faults = [part.why for part in parts if isinstance(part, Unusable)]
    if len(faults) == len(parts):
        raise ValueError(f"no part of its content can be read: {faults[0]}")
    return parts[0] if len(parts) == 1 else Parts(_described(part) for part in parts)


def _beside(data: object, parts: Sequence[Part]) -> object:
    """Data with what it does not say itself, which is mostly nothing."""
    others = [_described(part) for part in parts if _says_more(part, data)]
    return Parts([data, *others], data) if others else data


def _says_more(part: Part, data: object) -> bool:
    match part:
        case str():
            return data in ({}, []) and part.strip() not in ("", "{}", "[]")
        case Unusable(type="text"):
            return False
        case _:
            return True


def _described(part: Part) -> object:
    match part:
        case Image(data, media_type):
            return {"kind": "image", "media_type": media_type, "bytes": len(data)}
        case bytes():
            return {"kind": "bytes", "bytes": len(part)}
        case Unusable(kind, why):
            return {"kind": "unusable", "type": kind, "why": why}
        case _:
            return part


def _part(block: object) -> Part:
    try:
        return _read(block)
    except ValueError as error:
        kind = block.get("type") if isinstance(block, dict) else None
        return Unusable(kind[:40] if isinstance(kind, str) else None, str(error))


def _read(block: object) -> Part:
    if not isinstance(block, dict):
        raise ValueError(f"it is a {type(block).__name__}")
    match block.get("type"):
        case "text":
            return _text(block, "text")
        case "image":
            return _image(_decoded(block, "data"), block)
        case "audio":
            return _decoded(block, "data")
        case "resource_link":
            return _reference(
                "link", block, ("uri", "name", "title", "description", "mimeType", "size")
            )
        case "resource":
            return _resource(block.get("resource"))
        case kind:
            return {"kind": "unknown", "type": str(kind)[:40] if isinstance(kind, str) else None}


def _resource(resource: object) -> dict[str, Any]:
    if not isinstance(resource, dict):
        raise ValueError("its resource is no object")
    reference = _reference("resource", resource, ("uri", "mimeType"))
    if isinstance(resource.get("text"), str):
        return {**reference, "text": resource["text"]}
    if isinstance(resource.get("blob"), str):
        return {**reference, "bytes": len(_decoded(resource, "blob"))}
    return reference


def _reference(kind: str, block: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    told = {key: block[key] for key in keys if isinstance(block.get(key), str | int | float)}
    if "mimeType" in told:
        told["media_type"] = told.pop("mimeType")
    return {"kind": kind, **told}


def _image(data: bytes, block: dict[str, Any]) -> Part:
    media_type = block.get("mimeType")
    try:
        return Image(data, media_type.lower() if isinstance(media_type, str) else "")
    except ValueError:
        return data


def _text(block: dict[str, Any], key: str) -> str:
    text = block.get(key)
    if not isinstance(text, str):
        raise ValueError(f"it has no {key}")
    return text


def _decoded(block: dict[str, Any], key: str) -> bytes:
    """Base64 in any of its forms: with line ends, without padding, with the letters of addresses."""
    text = "".join(_text(block, key).split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("it is no base64") from error


def _error_text(content: object, data: object) -> str:
    """The tool's own words, as much as anybody reads; its data where it has none."""
    words: list[str] = []
    left = MAX_ERROR_CHARS
    for block in content if isinstance(content, list) else [{"text": content}]:
        text = _words_of(block)
        if text is not None and left > 0:
            words.append(text[:left])
            left -= len(words[-1])
    said = encodable("\n".join(words)).strip()
    return said or _as_text(data) or "the tool failed and did not say why"


def _words_of(block: object) -> str | None:
    match block:
        case {"text": str(text)} | {"resource": {"text": str(text)}}:
            return text
        case _:
            return None


def _as_text(data: object) -> str:
    whole = json_text(data, _QUICK_CHARS) if data else None
    return "" if whole is None else whole.text[:MAX_ERROR_CHARS]
