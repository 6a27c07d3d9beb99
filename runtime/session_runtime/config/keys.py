"""Names of keys: the dotted form people read, the form a variable uses, and the nearest known one.

Which keys exist is decided in ``shape``.
"""

import json
import re
import tomllib
from collections.abc import Iterable

from session_runtime import spelling

KeyPath = tuple[str, ...]

_SENSITIVE = re.compile("key|token|secret|pass|auth|credential|cookie|jwt|bearer", re.IGNORECASE)
_IN_ADDRESSES_AND_ARGUMENTS = re.compile("cred|session|signature", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_SHORT = frozenset({"pwd", "sas", "sig"})
_HARMLESS = re.compile(
    r"tokeni[sz]\w*|(?:max|min|num)[_-]?(?:(?:new|input|output|context|total|completion)[_-]?)?tokens?"
    r"|tokens?[_-]?(?:limit|count|budget|ttl)|(?:sort|primary|foreign|partition|group|order)[_-]?keys?"
    r"|key(?:board|word|space|map|frame)s?|monkey|author(?!i[sz])|bypass|passive|compass|pass-?through"
    r"|^.*(?:file|path|dir|folder|stdin|[_-](?:type|mode|method|scheme))s?$",
    re.IGNORECASE,
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BARE_DOTTED = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def dotted(path: KeyPath) -> str:
    """Write the key as TOML does: ``models."gpt-4.1".base_url``."""
    return ".".join(part if _BARE.fullmatch(part) else _quoted(part) for part in path)


def _quoted(part: str) -> str:
    return json.dumps(part, ensure_ascii=False).replace("\x7f", "\\u007f")


def parse_dotted(text: str) -> KeyPath:
    """Read a dotted key with TOML's own rules for quotes; ValueError if it is not one key."""
    if _BARE_DOTTED.fullmatch(text):
        return tuple(text.split("."))
    node: object = tomllib.loads(f"{text} = 0")
    path: list[str] = []
    while isinstance(node, dict):
        if len(node) != 1:
            raise ValueError(f"not one key: {text!r}")
        [(part, node)] = node.items()
        path.append(part)
    return tuple(path)


def variable_form(name: str) -> str:
    """Spell a name as a variable does: upper case, ``_`` for all but letters and digits."""
    return "".join(char if char.isalnum() else "_" for char in name).upper()


def sounds_secret(name: str) -> bool:
    """Whether a key of this name probably holds a secret."""
    return _SENSITIVE.search(name) is not None


def names_secret_value(name: str) -> bool:
    """Whether a parameter of an address or an argument of a command of this name probably holds a secret.

    Names such as ``max-tokens``, ``sort-key`` and ``token-file`` do not.
    """
    rest = _HARMLESS.sub("", name)
    words = {word.lower() for word in _WORD.findall(rest)}
    return (
        sounds_secret(rest)
        or _IN_ADDRESSES_AND_ARGUMENTS.search(rest) is not None
        or not words.isdisjoint(_SHORT)
    )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Find the known name most like ``name``, in any case; None if none is like it."""
    return next(iter(spelling.nearest(name, known)), None)
