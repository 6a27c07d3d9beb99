"""What is secret in the arguments of a command, as far as their words tell (CFG-4).

Every user of a machine can read the arguments of a process: secrets are better given as its variables.
All work grows with the length of the arguments and no faster.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from session_runtime.config.keys import names_secret_value
from session_runtime.config.origin import MASK
from session_runtime.config.secrets import masked_at, secrets_of_address

_BETWEEN: Final = r"""\s=:,;&?#/"'{}"""
_NAME: Final = rf"(?<![^{_BETWEEN}])[^{_BETWEEN}]++"
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]{0,31}://"
_PART: Final = re.compile(
    rf"""(?P<address>{_SCHEME}(?:(?P<user>[^\s/?#"']*)@)?[^\s"'#]*)"""
    rf"""|(?P<name>{_NAME})(?P<closed>["']?)\s*+(?P<sign>[=:])\s*+"""
    rf"""|(?<!\S)(?P<flag>-[^{_BETWEEN}]++)\s++(?!--)"""
    rf"""|(?<![^{_BETWEEN}])(?P<bearer>[Bb]earer)\s++"""
)
_NEXT: Final = re.compile(
    rf"""(?<![\s,;&])[\s,;&]++(?:--?[A-Za-z]|{_SCHEME}|["'][^{_BETWEEN}]++["']\s*+[=:]"""
    rf"""|[^{_BETWEEN}]++=(?![=\s,;&]|$))"""
)
"""What follows a value; the end of a secret in base64 (``Basic dTpw==``) is no name."""
_WORD: Final = re.compile(r"(?:(?:bearer|basic)\s++)?\S*", re.IGNORECASE)
_JSON_WORD: Final = re.compile(r"[^\s,}\]]*")
_QUOTED: Final = re.compile(r"""(?:"(?:[^"\\]++|\\.?)*+|'(?:[^'\\]++|\\.?)*+)""", re.DOTALL)
_HOST: Final = re.compile(rf"""{_SCHEME}(?:[^\s/?#"']*@)?([^\s/?#"']*)""")
_PLAIN: Final = re.compile(r"\d{1,5}|true|false|yes|no|on|off|auto|none|null", re.IGNORECASE)
_QUOTES: Final = ("'", '"')


@dataclass(frozen=True, slots=True)
class _Secret:
    """Where in an argument a secret stands."""

    start: int
    end: int
    in_address: bool = False


def masked_arguments(args: Sequence[object]) -> list[object]:
    """Copy arguments with a mask for each value that follows a name which sounds secret (CFG-4).

    The name is a flag of its own (``--token X``), or stands in the same text (``--token=X``,
    ``Authorization: X``, ``"token": "X"``); of an address, its user and what ``masked_address`` masks.
    Small numbers and switches such as ``off`` are none. What is masked already stays as it is.
    """
    found = _secrets(args)
    return [_masked(each, found[at]) for at, each in enumerate(args)]


def restored_arguments(kept: Sequence[object], now: Sequence[object]) -> list[object] | None:
    """Copy masked arguments, with the secrets that others have now at the same places (CFG-4b).

    A place is the flag before, or the words around the mask; where it comes more than once, the first
    belongs to the first. None if a place is not there as often as it was, or another host is named.
    """
    wanted = _places(kept)
    if not any(wanted):
        return list(kept)
    shown = masked_arguments(now)
    known = _places(shown)
    count, count_now = Counter(filter(None, wanted)), Counter(filter(None, known))
    if any(count[place] != count_now[place] for place in count) or _hosts(kept) != _hosts(shown):
        return None
    values: dict[tuple[str, str], list[object]] = defaultdict(list)
    for place, value in zip(known, now, strict=True):
        if place is not None:
            values[place].append(value)
    return [
        each if place is None else values[place].pop(0)
        for each, place in zip(kept, wanted, strict=True)
    ]


def secrets_in(args: Sequence[str]) -> Iterator[str]:
    """Give what is masked in them, but for what is in addresses; some are short."""
    for each, found in zip(args, _secrets(args), strict=True):
        yield from (each[one.start : one.end] for one in found if not one.in_address)


def secret_positions(args: Sequence[str]) -> tuple[int, ...]:
    """List the arguments, from 1 on, that hold what is masked."""
    return tuple(number for number, found in enumerate(_secrets(args), 1) if found)


def _masked(argument: object, found: tuple[_Secret, ...]) -> object:
    match argument:
        case str():
            return masked_at(argument, ((each.start, each.end) for each in found))
        case dict() | list():
            return MASK  # no argument can be that, and who knows what is in it
        case _:
            return argument


def _places(args: Sequence[object]) -> list[tuple[str, str] | None]:
    """Say of each masked argument where it stands: its text, and the flag before if that is a mask only."""
    places: list[tuple[str, str] | None] = []
    before = ""
    for each, found in zip(args, _secrets(args), strict=True):
        text = each if isinstance(each, str) else ""
        is_masked = any(text[one.start : one.end] == MASK for one in found)
        places.append((before if text == MASK else "", text) if is_masked else None)
        before = text
    return places


def _hosts(args: Sequence[object]) -> list[str]:
    return [host for each in args if isinstance(each, str) for host in _HOST.findall(each)]


def _secrets(args: Sequence[object]) -> list[tuple[_Secret, ...]]:
    """Find the secrets in each argument."""
    found: list[tuple[_Secret, ...]] = []
    before = ""
    for each in args:
        text = each if isinstance(each, str) else ""
        if _names_next(before) and not _is_next_flag(before, text):
            found.append(_unless_plain(text, 0, len(text)))
        else:
            found.append(tuple(_secrets_of(text)))
        before = text
    return found


def _names_next(argument: str) -> bool:
    """Whether an argument is a flag whose value follows, and is secret."""
    is_flag = argument.startswith("-") and re.search(r"[=:\s]", argument) is None
    return is_flag and names_secret_value(argument)


def _is_next_flag(flag: str, argument: str) -> bool:
    """Whether, instead of the value of a flag, another such flag follows; not ``-x`` after ``--token``."""
    return _names_next(argument) and (argument.startswith("--") or not flag.startswith("--"))


def _secrets_of(text: str) -> Iterator[_Secret]:
    at = 0
    while (found := _PART.search(text, at)) is not None:
        at = found.end()
        if found["address"] is not None:
            yield from _secrets_of_address(found)
        elif names_secret_value(found["name"] or found["flag"] or found["bearer"]):
            at = _end_of_value(text, found)
            inside = text[found.end() : found.end() + 1] in _QUOTES
            start = found.end() + inside
            end = at - 1 if inside and at - 1 >= start and text[at - 1] == text[start - 1] else at
            yield from _unless_plain(text, start, end)


def _unless_plain(text: str, start: int, end: int) -> tuple[_Secret, ...]:
    is_plain = start >= end or _PLAIN.fullmatch(text, start, end) is not None
    return () if is_plain else (_Secret(start, end),)


def _secrets_of_address(found: re.Match[str]) -> Iterator[_Secret]:
    if found["user"]:
        yield _Secret(*found.span("user"), in_address=True)
    for start, end in secrets_of_address(found["address"]):
        yield _Secret(found.start() + start, found.start() + end, in_address=True)


def _end_of_value(text: str, found: re.Match[str]) -> int:
    """Say where a value ends that begins where ``found`` does: with its quotes, or before the next name.

    A header (``Cookie: a=b; c=d``) and the value of a flag (``--token=a b``) go on to the end, and so does
    what is in brackets.
    """
    start = found.end()
    if (quoted := _QUOTED.match(text, start)) is not None:
        return min(quoted.end() + 1, len(text))
    if text[start : start + 1] in ("{", "["):
        return len(text)
    if found["name"] is None:
        return _end_of(_WORD, text, start)
    return _end_of_named(text, found)


def _end_of_named(text: str, found: re.Match[str]) -> int:
    start, name = found.end(), found.start("name")
    if found["closed"] and found["sign"] == ":":
        return _end_of(_JSON_WORD, text, start)
    if not found["closed"] and name > 0 and text[name - 1] in _QUOTES:
        closing = text.find(text[name - 1], start)
        return len(text) if closing < 0 else closing
    is_flag = name == 0 and text.startswith("-")
    if is_flag or found["sign"] == ":":
        return len(text)
    following = _NEXT.search(text, start)
    return len(text) if following is None else following.start()


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return start if found is None else found.end()
