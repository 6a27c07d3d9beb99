"""What a value that is secret as a whole is made of: some parts of it give it away just as well."""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import unquote, unquote_plus

_COMPOUND: Final = re.compile(r"(?:bearer|basic|digest|token|apikey|key)\s|[^=\s]=[^=\s]", re.I)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z-]*\s+")
_BETWEEN_WORDS: Final = re.compile(r"""[\s;,"'{}\[\]]+""")
_ADDRESS: Final = re.compile(r"""[A-Za-z][A-Za-z0-9+.-]{0,31}://(?:([^\s/?#"']*)@)?([^\s"']*)""")


def is_compound(value: str) -> bool:
    """Whether a value consists of a scheme and credentials, or of pairs of names and values."""
    return _COMPOUND.search(value) is not None


def parts_of(value: str) -> Iterator[str]:
    """Credentials behind a scheme, values of pairs, and user and password where they are encoded.

    Of JSON those are its values, never the names of its members. Some are short or empty, as
    ``address_parts`` too: whoever masks them decides how long one must be.
    """
    if (members := json_members(value)) is not None:
        yield from (text for _, text in members)
        return
    scheme = _SCHEME.match(value)
    for word in _BETWEEN_WORDS.split(value[scheme.end() :] if scheme else value):
        held = word.partition("=")[2]
        credentials = _decoded(word)
        yield from (word, word.rstrip("="), held, credentials)
        for text in (word, held, credentials):
            if "://" not in text:
                yield from text.partition(":")


def json_members(value: str, name: str = "") -> tuple[tuple[str, str], ...] | None:
    """The texts and numbers in an object or array of JSON, each with the name of the member that holds it.

    Those of an array on its own have ``name``. None if the value is no such JSON.
    """
    try:
        whole = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict | list):
        return None
    found: list[tuple[str, str]] = []
    waiting: list[tuple[str, object]] = [(name, whole)]
    while waiting:
        match waiting.pop():
            case _, dict(members):
                waiting += members.items()
            case holder, list(items):
                waiting += [(holder, each) for each in items]
            case _, None | bool():
                pass
            case holder, each:
                found.append((holder, str(each)))
    return tuple(found)


def address_parts(text: str) -> Iterator[tuple[str, str]]:
    """What the addresses in a text are given as credentials, and their parameters: names and values.

    The password is named ``password``, a user without one ``token``; values come as they are written, and
    once more without escapes where they have some.
    """
    for address in _ADDRESS.finditer(text):
        user, colon, password = (address[1] or "").partition(":")
        yield from _both("password" if colon else "token", password if colon else user, unquote)
        query = address[2].partition("#")[0].partition("?")[2]
        for parameter in query.split("&"):
            name, _, value = parameter.partition("=")
            yield from _both(unquote_plus(name), value, unquote_plus)


def _both(name: str, value: str, plain: Callable[[str], str]) -> Iterable[tuple[str, str]]:
    return ((name, each) for each in dict.fromkeys((value, plain(value))) if each)


def _decoded(word: str) -> str:
    """What a word in base64 stands for, if it is text."""
    try:
        raw = base64.b64decode(word + "=" * (-len(word) % 4), validate=True)
        return raw.decode("ascii")
    except ValueError:  # of either
        return ""
