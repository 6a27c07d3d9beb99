"""A tool that is called by its name, without a model: what is wanted, and what came of it (NET-1f).

How such a call runs is decided in ``ask``; who may make one, by the door.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Final


class _Everything:
    """Holds every name."""

    def __contains__(self, name: object) -> bool:
        return True


EVERYTHING: Final[Container[str]] = _Everything()


@dataclass(frozen=True, slots=True)
class DirectCall:
    """The tool by a name that it has, and its arguments.

    Only tools whose canonical name is in ``offered`` are there for it. Its result may have ``max_chars``
    characters, None for as many as a model is shown.
    """

    tool: str
    arguments: Mapping[str, Any]
    offered: Container[str] = EVERYTHING
    max_chars: int | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """What came of it: ``tool`` is the canonical name, ``text`` the result, or in words why there is none.

    ``structured`` is the same where the tool returned an object and all of it is shown. ``whole_chars`` is
    the length of the result if ``text`` does not show all of it, ``attempts`` how often the tool was begun.
    """

    tool: str
    ok: bool
    text: str
    structured: Mapping[str, Any] | None = None
    whole_chars: int | None = None
    attempts: int = 0
    duration_s: float = 0.0
