"""The key of the chain and where the chain ends, kept in two files of the state directory (RTE-13).

The end is sealed with the key, so that a log that was cut is found out.
"""

import hmac
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from session_runtime.audit.chain import KEY_BYTES, START, Link
from session_runtime.config.durable import replace_file
from session_runtime.types import JsonObject
from session_runtime.wire import strict_json, to_bytes

KEY_FILE: Final = "audit.key"
HEAD_FILE: Final = "audit.head"

_VERSION: Final = 1
_MOST_BYTES: Final = 1024 * 1024


class HeadError(OSError):
    """Key or head cannot be used; says which file and the way out."""


@dataclass(frozen=True, slots=True)
class Left:
    """How a folder was left when the log went on in another one.

    ``first`` is the name of its oldest file, ``sequence`` and ``hash`` are those of its last line, behind
    which stand ``torn_bytes`` that a crash left.
    """

    folder: str
    first: str
    sequence: int
    hash: str
    torn_bytes: int
    torn_hash: str


@dataclass(frozen=True, slots=True)
class Head:
    """The last line that is known to be on the disk, and where it ends.

    ``folder`` holds the files, ``first`` is the name of the oldest that is kept, ``file`` that of the
    newest, ``size`` the bytes up to the end of the line; names are empty before the first line. ``left``
    are other folders in which the log was before.
    """

    sequence: int
    hash: str
    folder: str
    first: str
    file: str
    size: int
    left: tuple[Left, ...] = ()

    @property
    def link(self) -> Link:
        """The place of the last line."""
        return Link(self.sequence, self.hash)

    def to_json(self) -> JsonObject:
        """What operators are shown."""
        return {"sequence": self.sequence, "head": self.hash, "file": self.file}


def read_key(state_dir: Path) -> bytes | None:
    """Read the key; None if there is none. Raises HeadError, or another OSError."""
    path = state_dir / KEY_FILE
    try:
        text = _content(path)
    except FileNotFoundError:
        return None
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise HeadError(f"{path} holds no key of the audit log: put the right file back")
    return key


def read_head(state_dir: Path, key: bytes) -> Head | None:
    """Read where the chain ends; None if there is no such file.

    Raises HeadError for one that this key did not seal, or another OSError.
    """
    path = state_dir / HEAD_FILE
    try:
        content = _content(path)
    except FileNotFoundError:
        return None
    try:
        data = strict_json(content.decode())
    except ValueError:
        data = None
    if isinstance(data, dict):
        told = str(data.pop("seal", ""))
        version = data.pop("version", None)
        if version == _VERSION and hmac.compare_digest(told.encode(), _seal(key, data).encode()):
            return _head_of(data)
    raise HeadError(
        f"{path} was not written with this {KEY_FILE}: it was edited, or the key replaced"
    )


def _content(path: Path) -> bytes:
    """No more than such a file may hold; raises OSError."""
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)


def _head_of(data: JsonObject) -> Head:
    """Read what was sealed, and therefore is as ``write_head`` wrote it."""
    left = tuple(Left(**each) for each in data.get("left", ()))
    return Head(**{**data, "left": left})


def write_head(folder: int, key: bytes, head: Head) -> None:
    """Replace the head in one step; ``folder`` is a handle of the state directory. Raises OSError."""
    data = asdict(head)
    if not head.left:
        del data["left"]
    told = {"version": _VERSION, **data, "seal": _seal(key, data)}
    replace_file(folder, HEAD_FILE, to_bytes(told) + b"\n", of_state=True)


def begin(folder: int, log_folder: Path) -> tuple[bytes, Head]:
    """Make a key, and a head before the first line; the key is written last. Raises OSError."""
    key = secrets.token_bytes(KEY_BYTES)
    head = Head(START.sequence, START.hash, str(log_folder), "", "", 0)
    write_head(folder, key, head)
    replace_file(folder, KEY_FILE, key.hex().encode(), of_state=True)
    return key, head


def _seal(key: bytes, data: JsonObject) -> str:
    return hmac.digest(key, b"head " + to_bytes(dict(sorted(data.items()))), "sha256").hex()
