"""What is secret in a value that may hold anything, or in a list of arguments.

Which keys hold such values is decided in ``shape``; what is put in the place of a secret, by who asks.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from session_runtime.config.arguments import are_secret, masked_argument
from session_runtime.config.keys import KeyPath, sounds_secret
from session_runtime.config.origin import MASK
from session_runtime.config.secrets import masked_address

Steps = tuple[str | int, ...]
"""The way to a value: names of keys, and positions in lists."""

Show = Callable[[Steps, object, bool], object]
"""Gives what to write instead of a value: of a secret, or (False) of a text that may hold one."""

_TOLD_TO_MODELS: KeyPath = ("handlers", "entries")
"""Holds no secret, whatever the parameters of a tool are called."""


def mask(steps: Steps, value: object, secret: bool) -> object:
    """The ``Show`` of everything that is for people (CFG-4)."""
    return MASK if secret else masked_text(steps, str(value))


def masked_text(steps: Steps, text: str) -> str:
    """Give a text without the secrets in it: an argument of a command, or an address."""
    return masked_argument(text) if holds_arguments(steps[:-1]) else masked_address(text)


def holds_arguments(path: Steps) -> bool:
    """Whether the key is a list of arguments of a command."""
    return len(path) == 4 and path[:2] == ("mcp", "servers") and path[3] == "args"


def names_secret(path: Steps) -> bool:
    """Whether the last name of ``path`` sounds like a secret, and may be one."""
    return path[: len(_TOLD_TO_MODELS)] != _TOLD_TO_MODELS and sounds_secret(str(path[-1]))


def by_name(value: object, path: Steps, show: Show, *, secret: bool) -> object:
    """Copy a value as JSON, with what ``show`` gives for each text.

    Secret is all of it if ``secret``, else what stands under such a name inside.
    """
    match value:
        case Mapping():
            steps = ((name, inner, (*path, name)) for name, inner in value.items())
            return {
                name: by_name(inner, way, show, secret=secret or names_secret(way))
                for name, inner, way in steps
            }
        case list() | tuple():
            whole = are_secret(value) if holds_arguments(path) else (secret,) * len(value)
            return [
                by_name(item, (*path, at), show, secret=secret or whole[at])
                for at, item in enumerate(value)
            ]
        case str() if value:
            return show(path, value, secret)
        case Path():
            return str(value)
        case _:
            return value
