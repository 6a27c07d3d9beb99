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
from session_runtime.trace.parts import address_parts, is_compound, parts_of
from session_runtime.trace.redact import MASK

_LEAST_CHARS: Final = 8  # of a parameter whose name does not sound secret
_KEY_IN_PATH: Final = re.compile(r"(?=[^/]*[0-9])[^/]{16,}")


def secrets_of(server: McpServer) -> tuple[str, ...]:
    """The values of ``env`` and ``headers`` and their parts, and what ``url`` and ``args`` keep secret."""
    return tuple(dict.fromkeys(secret for secret in _secrets(server) if secret))


def kept_from_results(server: McpServer) -> tuple[str, ...]:
    """Those of them that are certainly secrets: by their names or their places, and not too short.

    Results and what is said of tools are for reading, so that nothing is taken out of them which only might
    be one.
    """
    given = [
        (name, value.get_secret_value())
        for name, value in (*server.env.items(), *server.headers.items())
    ]
    found = [
        part for name, value in given if sounds_secret(name) for part in (value, *parts_of(value))
    ]
    texts = (*(value for _, value in given), *server.args, server.url or "")
    found += [value for text in texts for name, value in address_parts(text) if sounds_secret(name)]
    found += _of_arguments(server.args)
    return tuple(
        sorted({each for each in found if len(each) >= _LEAST_CHARS}, key=len, reverse=True)
    )


def masked(value: Any, secrets: Sequence[str]) -> Any:
    """The same JSON data with these secrets masked in its texts and keys, the longest of them first."""
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, MASK)
            return value
        case dict():
            return {masked(key, secrets): masked(each, secrets) for key, each in value.items()}
        case list():
            return [masked(each, secrets) for each in value]
        case _:
            return value


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
