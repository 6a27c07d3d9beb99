"""Which names and paths file tools take, and what a user's own folder is called; nothing is opened."""

import hashlib
import re
import unicodedata
from typing import Final

from session_runtime.errors import ToolError
from session_runtime.toolbox.owner import Owner
from session_runtime.types import LOCAL

MAX_PARTS: Final = 32
MAX_NAME_BYTES: Final = 255
TEMPORARY: Final = ".session-runtime-"
"""How the names of half-written files begin; no tool sees or names them."""

_OF_PRINCIPAL = "@"
_SHOWN_CHARS = 80
_MAX_USER_CHARS = 100
_KEPT = re.compile(r"[a-z0-9_-]")
_UNSEEN = ("Cc", "Cs", "Zl", "Zp")  # controls, half characters, line and paragraph separators


def parts_of(path: str) -> tuple[str, ...]:
    """Split ``root/folder/name``; the empty path has no parts. ToolError says what is wrong with it."""
    if not path:
        return ()
    parts = tuple(path.split("/"))
    fault = _path_fault(parts) or next((f for part in parts if (f := name_fault(part))), None)
    if fault is not None:
        raise ToolError(f"The path {shown(path)} cannot be used: {fault}.", code="files.bad_path")
    return parts


def _path_fault(parts: tuple[str, ...]) -> str | None:
    if parts[0] in ("", "~"):
        return "paths begin with the name of a root, as in docs/plan.txt"
    if len(parts) > MAX_PARTS:
        return f"it has more than {MAX_PARTS} parts"
    return None


def name_fault(name: str) -> str | None:
    """Say why no file or folder of this name is opened, or None."""
    if name == "":
        return "it has an empty part; write one / between two names and none at the end"
    if name in (".", ".."):
        return f"{name} is not followed; write the names of all folders from the root on"
    if "\\" in name:
        return "parts are separated by /, and \\ is not allowed"
    if "/" in name or any(unicodedata.category(char) in _UNSEEN for char in name):
        return "it holds a control character or half a character"
    if name != name.strip():
        return "a name in it begins or ends with a blank"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"a name in it is longer than {MAX_NAME_BYTES} bytes"
    if not unicodedata.is_normalized("NFC", name):
        return f"accents must be written in composed form (NFC): {shown(_composed(name))}"
    if name.startswith(TEMPORARY):
        return f"names that begin with {TEMPORARY} are for files that are being written"
    return None


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def shown(path: str) -> str:
    """A path for a message: quoted, escaped and bounded."""
    text = path if len(path) <= _SHOWN_CHARS else f"{path[:_SHOWN_CHARS]}…"
    return repr(text)


def own_folders(owner: Owner) -> tuple[str, ...] | None:
    """Name the folders that lead to an owner's own one, from the root on; None without a user.

    Users of a keyed principal are below a folder of the principal, whose name no user's folder has.
    """
    if owner.user is None:
        return None
    own = user_folder(owner.user)
    local = owner.principal == LOCAL.name
    return (own,) if local else (f"{_OF_PRINCIPAL}{user_folder(owner.principal)}", own)


def user_folder(user: str) -> str:
    """Name a user's own folder: one name per user and one user per name, on any file system.

    Small letters, digits, ``_`` and ``-`` stand for themselves, every other byte of UTF-8 is written
    as ``%`` and two hexadecimal digits, and nobody is a single ``%``. What would be too long is cut
    and ends in ``~`` and a digest of the whole.
    """
    data = user.encode("utf-8", "surrogatepass")
    name = "".join(_escaped(byte) for byte in data) or "%"
    if len(name) <= _MAX_USER_CHARS:
        return name
    digest = hashlib.blake2b(data, digest_size=20).hexdigest()
    return f"{name[: _MAX_USER_CHARS - len(digest) - 1]}~{digest}"


def _escaped(byte: int) -> str:
    char = chr(byte)
    return char if _KEPT.fullmatch(char) else f"%{byte:02x}"
