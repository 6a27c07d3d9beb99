"""What the content of a message is as text, on all wires."""

from typing import Final

from session_runtime.types import Content, ImagePart, TextPart

IMAGE_NOTE: Final = "[an image, not shown]"
"""Stands for an image where a service takes none."""


def plain_text(content: Content | None) -> str:
    """The text of a content, its parts joined by line breaks, with a note for each image."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text if isinstance(part, TextPart) else IMAGE_NOTE for part in content)


def has_image(content: Content | None) -> bool:
    """Whether there is an image in it."""
    return isinstance(content, tuple) and any(isinstance(part, ImagePart) for part in content)
