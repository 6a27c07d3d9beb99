"""The file that keeps what is revoked over restarts, and what one revocation is (REL-9).

When it is read and written is decided in ``revocations``.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from session_runtime.config.durable import (
    UnconfirmedError,
    make_folder,
    own_folder,
    replace_file,
)
from session_runtime.errors import StartError
from session_runtime.registry.shared_file import Stamp, stamp_of
from session_runtime.state_files import way_out
from session_runtime.types import JsonObject
from session_runtime.wire import strict_json, to_bytes

FILE: Final = "revocations.json"

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Revocation:
    """A pattern of canonical names whose tools may not be called until it is lifted.

    ``number`` is never given again, ``time`` is in seconds since 1970; ``reason`` and ``by`` (who revoked)
    are for operators alone.
    """

    number: int
    pattern: str
    reason: str
    by: str
    time: float

    def to_json(self) -> JsonObject:
        """Give it as every door shows it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Revoked:
    """All that is revoked, in the order of the numbers, and the last number that was given."""

    revocations: tuple[Revocation, ...] = ()
    last: int = 0


NOTHING_REVOKED: Final = Revoked()


class RevocationFile:
    """``revocations.json`` of one state directory, which several processes follow; every method blocks.

    Used by one thread at a time.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE
        self._known: bytes | None = None
        self._stamp: Stamp | None = None

    def read(self) -> Revoked:
        """Read what was revoked before; nothing if there is no file.

        Raises StartError (``start.revocations``) if that cannot be known: a brake that was pulled must not
        come loose unnoticed.
        """
        try:
            content = self._content()
            revoked = NOTHING_REVOKED if content is None else _read(strict_json(content.decode()))
        except (OSError, ValueError) as error:
            mend = way_out(
                error, self._path, "mend the file, or delete it to lift every revocation"
            )
            raise StartError(
                f"it cannot be known which tools are revoked: {self._path}: {_reason(error)}; {mend}",
                code="start.revocations",
            ) from error
        self._known = content
        return revoked

    def newer(self) -> Revoked | None:
        """Read what somebody else wrote since it was read or written here; None if nobody did.

        Raises OSError and ValueError if that cannot be known, also if the file is gone: whoever lifts
        everything leaves a file that says so.
        """
        stamp = stamp_of(self._path)
        if stamp is not None and stamp == self._stamp:
            return None
        content = self._content()
        if content == self._known:
            self._stamp = stamp
            return None
        if content is None:
            raise OSError(f"{self._path} is gone")
        try:
            revoked = _read(strict_json(content.decode()))
        except ValueError as error:
            raise ValueError(f"{self._path}: {_reason(error)}") from error
        self._known, self._stamp = content, stamp
        return revoked

    def write(self, revoked: Revoked) -> None:
        """Replace the file in one step, so that a process that dies leaves the old or the new one.

        Raises OSError, also if somebody else has changed the file since: that would be lost. After an
        UnconfirmedError it is replaced, though a crash of the machine may bring back the old one.
        """
        content = to_bytes(_to_json(revoked)) + b"\n"
        make_folder(self._path.parent)
        try:
            with own_folder(self._path.parent) as folder:
                on_disk = self._content()
                if on_disk is not None and on_disk != self._known:
                    raise OSError(
                        f"{self._path} was changed by somebody else: do it again, or mend the file if that"
                        " does not help"
                    )
                replace_file(folder, FILE, content, of_state=True)
        except UnconfirmedError:
            self._known = content
            raise
        self._known = content

    def _content(self) -> bytes | None:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None


def _to_json(revoked: Revoked) -> JsonObject:
    return {
        "version": _VERSION,
        "last": revoked.last,
        "revocations": [revocation.to_json() for revocation in revoked.revocations],
    }


def _read(data: object) -> Revoked:
    """Read the content of the file; ValueError for anything that this version did not write."""
    match data:
        case {"version": 1, "last": int(last), "revocations": list(items), **more} if not more:
            revocations = tuple(map(_read_one, items))
            numbers = [revocation.number for revocation in revocations]
            if sorted(set(numbers)) == numbers and all(0 < number <= last for number in numbers):
                return Revoked(revocations, last)
            raise ValueError("its numbers are not in order")
        case {"version": int(version)} if version != _VERSION:
            raise ValueError(f"it has version {version}, and only version {_VERSION} can be read")
    raise ValueError("it does not hold version, last and revocations")


def _read_one(item: object) -> Revocation:
    match item:
        case {
            "number": int(number),
            "pattern": str(pattern),
            "reason": str(reason),
            "by": str(by),
            "time": int() | float() as time,
            **more,
        } if not more and pattern and math.isfinite(time):
            return Revocation(number, pattern, reason, by, time)
    raise ValueError(f"{_shown(item)} is no revocation")


def _shown(item: object) -> str:
    return (
        f"the one numbered {item.get('number')!r}"[:80] if isinstance(item, Mapping) else "an entry"
    )


def _reason(error: Exception) -> Any:
    match error:
        case OSError(strerror=str(reason)):
            return reason
        case UnicodeDecodeError():
            return f"it is not UTF-8 at byte {error.start}"
    return error
