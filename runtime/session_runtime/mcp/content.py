"""Turns the result of a remote call into what a handler could return (RTE-10).

What the model reads of it is decided in ``registry.invoke``.
"""

import binascii
from base64 import b64decode
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from session_runtime.errors import ToolError
from session_runtime.handler import Image
from session_runtime.registry.invoke.encode import encodable, least_chars
from session_runtime.threads import aside
from session_runtime.trace.redact import MASK
from session_runtime.types import JsonObject

MAX_ERROR_CHARS: Final = 8_000
MAX_PARTS: Final = 10_000
_QUICK_CHARS: Final = 262_144

Part = str | dict[str, Any] | Image | bytes


async def value_of(result: JsonObject, secrets: Sequence[str] = ()) -> object:
    """Give what a tool returned: data if it is structured, else what its content says.

    One text stays a text, several become one with line ends between; an image becomes an ``Image``, sound
    and the bytes of a resource become bytes. Where there are several parts of different kinds each is
    described in a list; links and resources are references with their address. ``secrets`` are masked in
    all of its texts. Raises ToolError with the
    tool's words for a result that is an error, ValueError for one that cannot be read.
    """
    if least_chars(result, _QUICK_CHARS) <= _QUICK_CHARS:
        return _masked_value(result, secrets)
    return await aside("reading a result", partial(_masked_value, result, secrets))


def _masked_value(result: JsonObject, secrets: Sequence[str]) -> object:
    if not secrets:
        return _value(result)
    try:
        return _masked(_value(result), secrets)
    except ToolError as error:
        raise ToolError(str(_masked(str(error), secrets))) from None


def _masked(value: object, secrets: Sequence[str]) -> object:
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, MASK)
            return value
        case dict():
            return {_masked(key, secrets): _masked(each, secrets) for key, each in value.items()}
        case list():
            return [_masked(each, secrets) for each in value]
        case _:
            return value


def _value(result: JsonObject) -> object:
    content = result.get("content")
    if content is None and result.get("structuredContent") is not None:
        content = []
    if not isinstance(content, list):
        raise ValueError("it has no content")
    if len(content) > MAX_PARTS:
        raise ValueError(f"it has {len(content)} parts, more than {MAX_PARTS}")
    if result.get("isError") is True:
        raise ToolError(_error_text(content))
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    return _joined([_part(block) for block in content])


def _joined(parts: Sequence[Part]) -> object:
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "\n".join(texts)
    return parts[0] if len(parts) == 1 else [_described(part) for part in parts]


def _described(part: Part) -> object:
    match part:
        case Image(data, media_type):
            return {"kind": "image", "media_type": media_type, "bytes": len(data)}
        case bytes():
            return {"kind": "bytes", "bytes": len(part)}
        case _:
            return part


def _part(block: object) -> Part:
    if not isinstance(block, dict):
        raise ValueError(f"a part of its content is a {type(block).__name__}")
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
        raise ValueError("a resource in its content is no object")
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
        raise ValueError(f"a part of its content has no {key}")
    return text


def _decoded(block: dict[str, Any], key: str) -> bytes:
    try:
        return b64decode(_text(block, key), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("a part of its content is no base64") from error


def _error_text(content: Sequence[object]) -> str:
    """The tool's own words, as much as anybody reads."""
    words: list[str] = []
    left = MAX_ERROR_CHARS
    for block in content:
        if isinstance(block, dict) and isinstance(block.get("text"), str) and left > 0:
            words.append(block["text"][:left])
            left -= len(words[-1])
    return encodable("\n".join(words)).strip() or "the tool failed and did not say why"
