"""Takes the secrets of a profile out of the words of its service, in whatever form they come back.

What looks like a secret of somebody else is masked in ``trace.redact``.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from session_runtime.config.by_name import Steps, by_name
from session_runtime.config.keys import sounds_secret
from session_runtime.config.models import ModelProfile
from session_runtime.config.secrets import address_secrets
from session_runtime.trace.parts import is_compound, parts_of
from session_runtime.trace.redact import MASK

MIN_SECRET_CHARS: Final = 4
_MAX_LAYERS: Final = 3
_LONGEST_ESCAPE: Final = 6
_KINDS: Final = (
    r"%[0-9A-Fa-f]{2}",
    r"\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\(?s:.)",
    r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,6});",
)
_ESCAPES_OF_A_KIND: Final = tuple(map(re.compile, _KINDS))
_ESCAPE: Final = re.compile("|".join(_KINDS))
_CONTROLS: Final[Mapping[str, str]] = {"n": "\n", "r": "\r", "t": "\t", "b": "", "f": ""}


def secrets_of(profile: ModelProfile) -> tuple[str, ...]:
    """What no message may show: the key, the values of headers, and what such a value is made of.

    Also what the query of ``base_url`` keeps secret, and ``extra_body`` under names that sound secret.
    """
    found = {profile.api_key.get_secret_value()} if profile.api_key else set()
    found.update(address_secrets(profile.base_url or ""), _body_secrets(profile.extra_body))
    for name, value in profile.headers.items():
        whole = value.get_secret_value()
        found.add(whole)
        if sounds_secret(name) or is_compound(whole):
            found.update(parts_of(whole))
    return tuple(sorted(secret for secret in found if len(secret) >= MIN_SECRET_CHARS))


def masked(text: str, secrets: Iterable[str], limit: int) -> str:
    """The first ``limit`` characters of a text without its secrets and without what cannot be seen.

    A secret is found as it is and escaped for JSON, HTML, an address or a form, also twice over. What
    is left stays as it was sent.
    """
    needles = {needle for secret in secrets for needle in _needles(secret)}
    window = limit + _LONGEST_ESCAPE * max(map(len, needles), default=0)
    seen = "".join(char for char in text[:window] if char.isprintable() or char.isspace())
    places = sorted(
        place for layer in _layers(seen) for needle in needles for place in layer.places(needle)
    )
    pieces: list[str] = []
    end = 0
    for start, stop in places:
        if start >= limit:
            break
        if start >= end:
            pieces += [seen[end:start], MASK]
        end = max(end, stop)
    return "".join([*pieces, seen[end:limit]])


def _body_secrets(body: Mapping[str, object]) -> Iterable[str]:
    found: list[str] = []

    def note(steps: Steps, value: object, secret: bool) -> object:
        del steps
        found.extend([str(value)] if secret else address_secrets(str(value)))
        return value

    by_name(body, (), note, secret=False)
    return found


def _needles(secret: str) -> Iterable[str]:
    """A secret as it is looked for: one that looks escaped itself has a form for each layer."""
    return (layer.text for layer in _layers(secret) if len(layer.text) >= MIN_SECRET_CHARS)


@dataclass(frozen=True, slots=True)
class _Layer:
    """A text with some of its escapes undone; ``starts`` says where each character began in it."""

    text: str
    starts: Sequence[int]

    def places(self, needle: str) -> Iterable[tuple[int, int]]:
        """Where a text stands, from start to end in the original."""
        at = self.text.find(needle)
        while at >= 0:
            end = at + len(needle)
            yield self.starts[at], self.starts[end]
            at = self.text.find(needle, end)


def _layers(text: str) -> Iterable[_Layer]:
    """The text as it is, and with its escapes undone once, twice, ... ``+`` counts as a blank.

    Also with those of one kind alone undone: what stands beside a secret may complete another kind.
    """
    layer = _Layer(text.replace("+", " "), range(len(text) + 1))
    yield from (_unescaped(layer, kind) for kind in _ESCAPES_OF_A_KIND if kind.search(layer.text))
    for _ in range(_MAX_LAYERS):
        yield layer
        inner = _unescaped(layer, _ESCAPE)
        if inner.text == layer.text:
            return
        layer = inner
    yield layer


def _unescaped(layer: _Layer, escapes: re.Pattern[str]) -> _Layer:
    pieces: list[str] = []
    starts: list[int] = []
    end = 0
    for found in escapes.finditer(layer.text):
        char = _char(found[0])
        pieces += [layer.text[end : found.start()], char]
        starts += layer.starts[end : found.start()]
        starts += [layer.starts[found.start()]] * len(char)
        end = found.end()
    return _Layer("".join([*pieces, layer.text[end:]]), [*starts, *layer.starts[end:]])


def _char(escape: str) -> str:
    """What an escape stands for; nothing if that cannot be seen, the escape itself if it is none."""
    if escape.startswith("&"):
        char = html.unescape(escape)
        return char if len(char) > 1 else _visible(char)
    if escape.startswith("%"):
        return _visible(chr(int(escape[1:], 16)))
    if len(escape) > 2:
        return _visible(chr(int(escape[2:], 16)))
    return _CONTROLS.get(escape[1], escape[1])


def _visible(char: str) -> str:
    return char.replace("+", " ") if char.isprintable() or char.isspace() else ""
