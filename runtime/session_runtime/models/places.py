"""Where the pieces of an answer stood: what is kept with a message beside its text and calls (ASK-3).

What is kept comes back in a history that callers write. So it holds no text and no call of its own, only
reasoning and the order of things; all else is taken from the message it came with.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

from session_runtime.config.models import ModelProfile
from session_runtime.types import JsonObject

Phase = Literal["commentary", "final_answer"]


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of reasoning as it is sent back."""

    item: JsonObject


@dataclass(frozen=True, slots=True)
class Said:
    """Text stood here: that many characters of it, and its part in the answer."""

    characters: int
    phase: Phase | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """The next call of the message stood here."""


Place = Reasoning | Said | Called


def objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list; none if it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def origin_of(profile: ModelProfile) -> str:
    """Names service and model without showing them: reasoning of another would be refused."""
    where = f"{profile.base_url}\n{profile.model}"
    return hashlib.blake2b(where.encode(), digest_size=8).hexdigest()
