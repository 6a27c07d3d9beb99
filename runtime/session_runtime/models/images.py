"""What the URL of an image holds: data, which services want in base64, or an address."""

import base64
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, unquote_to_bytes

_DATA: Final = re.compile(r"data:([^,;]*+)((?:;[^,;]*+)*+),", re.IGNORECASE)
_IMAGE: Final = re.compile(r"image/[a-z0-9.+-]+")


@dataclass(frozen=True, slots=True)
class InlineImage:
    """The data of an image in base64."""

    media_type: str
    data: str


def is_data(url: str) -> bool:
    """Whether the URL holds data, of an image or of anything else."""
    return url[:5].lower() == "data:"


def inline_image(url: str) -> InlineImage | None:
    """The image in a URL; None for an address, and for data of anything else."""
    head = _DATA.match(url)
    media_type = head[1].strip().lower() if head else ""
    if head is None or not _IMAGE.fullmatch(media_type):
        return None
    given = url[head.end() :]
    if not head[2].strip().lower().endswith(";base64"):
        written = unquote_to_bytes(given.encode("utf-8", "replace"))
        return InlineImage(media_type, base64.b64encode(written).decode())
    return InlineImage(media_type, "".join((unquote(given) if "%" in given else given).split()))


def sent_url(url: str) -> str:
    """The URL as services take it: the data of an image in base64, anything else as it came."""
    image = inline_image(url)
    return url if image is None else f"data:{image.media_type};base64,{image.data}"
