"""Seals records into lines that follow one another, and recognises the next one; knows no files.

A line is a JSON object whose last member ``hash`` is an HMAC-SHA256 over the hash of the line before and
everything in front of that member, byte for byte (RTE-13).
"""

import hmac
import json
import re
from dataclasses import dataclass
from typing import Final

from session_runtime.types import JsonObject
from session_runtime.wire import to_bytes

KEY_BYTES: Final = 32
LINE_BYTES: Final = 1024 * 1024
"""No line is longer, its end included."""
TORN_BYTES: Final = 2 * LINE_BYTES
"""What crashes leave behind the last line is not longer."""

_TAIL: Final = re.compile(rb',"hash":"([0-9a-f]{64})"\}\n\Z')
_TAIL_BYTES: Final = len(b',"hash":""}\n') + 64
_DECODER: Final = json.JSONDecoder()
_SEQUENCE: Final = re.compile(rb'\{"seq":([1-9][0-9]{0,17}),')


@dataclass(frozen=True, slots=True)
class Link:
    """The place of a line in the chain: its number, from 1 on, and its hash in hexadecimal digits."""

    sequence: int
    hash: str


START: Final = Link(0, "0" * 64)
"""What the very first line follows."""


def seal(key: bytes, last: Link, record: JsonObject) -> tuple[bytes, Link]:
    """Make the line that follows ``last``; ``record`` has neither ``seq`` nor ``hash``."""
    sequence = last.sequence + 1
    body = to_bytes({"seq": sequence, **record})[:-1]
    link = Link(sequence, _hash(key, last, body))
    return b'%b,"hash":"%b"}\n' % (body, link.hash.encode()), link


def follow(key: bytes, last: Link, line: bytes) -> Link | None:
    """The place of a line that follows ``last``; None if this one does not."""
    found = _TAIL.search(line, max(0, len(line) - _TAIL_BYTES))
    if found is None or sequence_of(line) != last.sequence + 1:
        return None
    told = found[1].decode()
    if not hmac.compare_digest(told, _hash(key, last, line[: found.start()])):
        return None
    return Link(last.sequence + 1, told)


def sequence_of(line: bytes) -> int | None:
    """The number that a line says it has; None if it says none."""
    found = _SEQUENCE.match(line)
    return int(found[1]) if found is not None else None


def is_torn(content: bytes, sequence: int) -> bool:
    """Whether crashes may have left this where the line of that number was to be written.

    That is the beginning of the line, without an end; or several, where the line that was to tell of the
    one before was not finished either. A whole JSON object is none of it, whatever stands behind it.
    """
    if len(content) > TORN_BYTES:
        return False
    first, *more = content.split(b"\n")
    start = b'{"seq":%d,' % sequence
    again = b'%b"event":"recovered",' % start
    return _is_begun(first, start) and all(_is_begun(each, again) for each in more)


def _is_begun(piece: bytes, start: bytes) -> bool:
    written = piece.rstrip(b"\0")  # of which some file systems make up what they could not keep
    if not piece or not (written.startswith(start) or start.startswith(written)):
        return False
    try:
        _DECODER.raw_decode(written.decode("utf-8", "replace"))
    except ValueError:
        return True
    except RecursionError:
        pass
    return False


def _hash(key: bytes, last: Link, body: bytes) -> str:
    return hmac.digest(key, b"line %b %b" % (last.hash.encode(), body), "sha256").hex()
