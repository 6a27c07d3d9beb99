"""What a server is given or reached by that nobody else shall read, in all the parts it can come back in.

What looks like a secret of somebody else is masked in ``trace.redact``.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from session_runtime.config.arguments import secrets_in
from session_runtime.config.keys import sounds_secret
from session_runtime.config.mcp import McpServer
from session_runtime.trace.parts import address_parts, is_compound, json_members, parts_of
from session_runtime.trace.redact import MASK

_LEAST_CHARS: Final = 8  # of a parameter whose name does not sound secret
_LEAST_CHARS_OF_WORDS: Final = 20  # so that they are a phrase that nothing else consists of
_KEY_IN_PATH: Final = re.compile(r"(?=[^/]*[0-9])[^/]{16,}")


_BETWEEN_WORDS: Final = re.compile(r"[\s_.,:;/@-]+")
_PATH: Final = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[\\/]\.?[A-Z]?[a-z]+(?:[\\/][^\\/]+)+")
_ABOUT: Final = re.compile(
    r"(?:[_.\s-]|(?<=[a-z])(?=[A-Z]))(?i:path|file|dir|folder|ur[il]|type|mode|method|scopes?|name|user"
    r"|username|email|host|port|server|domain|endpoint|region|provider|realm|issuer|audience)$"
)
"""Names such as TOKEN_URL hold something about a secret, not the secret."""

_IN_WORDS: Final = frozenset({"title", "description", "$comment", "default", "examples", "example"})
_BY_NAME: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)
_VALUES: Final = frozenset({"enum", "const"})


def secrets_of(server: McpServer) -> tuple[str, ...]:
    """The values of ``env`` and ``headers`` and their parts, and what ``url`` and ``args`` keep secret."""
    return tuple(dict.fromkeys(secret for secret in _secrets(server) if secret))


def kept_from_results(server: McpServer) -> tuple[str, ...]:
    """Those of them that are certainly secrets: by their names or their places, and by how they look.

    Results and what is said of tools are for reading, so that nothing is taken out of them which only might
    be one.
    """
    given = [
        (name, value.get_secret_value())
        for name, value in (*server.env.items(), *server.headers.items())
    ]
    found = [part for name, value in given for part in _named(name, value)]
    texts = (*(value for _, value in given), *server.args, server.url or "")
    found += [value for text in texts for name, value in address_parts(text) if _is_secret(name)]
    found += _of_arguments(server.args)
    return tuple(sorted({each for each in found if _is_certain(each)}, key=len, reverse=True))


def _named(name: str, value: str) -> Iterator[str]:
    """What a variable or header holds that is a secret by name; in JSON each member has its own."""
    members = json_members(value, name)
    if members is not None:
        yield from (each for member, each in members if _is_secret(member))
    elif _is_secret(name):
        yield value
        yield from parts_of(value)


def _is_secret(name: str) -> bool:
    return sounds_secret(name) and not _ABOUT.search(name)


def _is_certain(value: str) -> bool:
    """Whether a value that has the name or place of a secret does not look like something else.

    That are paths, addresses, whose own secrets count on their own, and words that stand elsewhere too.
    """
    if len(value) < _LEAST_CHARS or "://" in value or _PATH.fullmatch(value):
        return False
    return len(value) >= _LEAST_CHARS_OF_WORDS or not _is_words(value)


def _is_words(value: str) -> bool:
    words = [word for word in _BETWEEN_WORDS.split(value) if word]
    return all(
        word.isalpha() and word in (word.lower(), word.upper(), word.title()) for word in words
    )


def masked(value: Any, secrets: Sequence[str]) -> Any:
    """The same JSON data with these secrets masked in its texts and keys, of which none is lost.

    The longest secret is looked for first.
    """
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, MASK)
            return value
        case dict():
            known: dict[str, Any] = {}
            for key, each in value.items():
                name = masked(key, secrets)
                while name in known or (name != key and name in value):
                    name += f" ({len(known) + 1})"
                known[name] = masked(each, secrets)
            return known
        case list():
            return [masked(each, secrets) for each in value]
        case _:
            return value


def masked_words(schema: Any, secrets: Sequence[str]) -> Any:
    """The same schema with these secrets masked in what is said in words, and in defaults and examples.

    All by which a call is made stays: names, and which values are allowed.
    """
    match schema:
        case dict():
            return {key: _masked_keyword(key, each, secrets) for key, each in schema.items()}
        case list():
            return [masked_words(each, secrets) for each in schema]
        case _:
            return schema


def _masked_keyword(keyword: str, value: Any, secrets: Sequence[str]) -> Any:
    if keyword in _VALUES:
        return value
    if keyword in _IN_WORDS:
        return masked(value, secrets)
    if keyword in _BY_NAME and isinstance(value, dict):
        return {name: masked_words(each, secrets) for name, each in value.items()}
    return masked_words(value, secrets)


def _secrets(server: McpServer) -> Iterator[str]:
    for name, secret in (*server.env.items(), *server.headers.items()):
        value = secret.get_secret_value()
        yield value
        yield from _of_addresses(value)
        if is_compound(value) or sounds_secret(name):
            yield from parts_of(value)
    yield from _of_arguments(server.args)
    if server.url is not None:
        yield from _of_addresses(server.url)
        yield from _KEY_IN_PATH.findall(urlsplit(server.url).path)


def _of_addresses(text: str) -> Iterator[str]:
    for name, value in address_parts(text):
        if sounds_secret(name) or len(value) >= _LEAST_CHARS:
            yield value


def _of_arguments(args: Sequence[str]) -> Iterator[str]:
    """What follows a name that sounds secret, be it in the same argument or in the next one."""
    for each in args:
        yield from _of_addresses(each)
    for value in secrets_in(args):
        yield value
        yield from parts_of(value)
