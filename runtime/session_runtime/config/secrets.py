"""Secrets: values that stand in a variable or a file of their own, and who may be asked for them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote_plus

from pydantic import SecretStr

from session_runtime.config.keys import names_secret_value
from session_runtime.config.origin import MASK

Span = tuple[int, int]
"""Where a part of a text begins and ends."""

MAX_FILE_BYTES = 1024 * 1024
NOT_SET = "is not set"
"""How the fault of a variable ends that a process does not have."""

_ADDRESS = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^\s?#]*)\?([^\s#]*)(#\S*)?")
_GRANTS = re.compile(r"(?i:access)|(?<![A-Za-z])code(?![a-z])|Code(?![a-z])|CODE")
"""Words of sign-in by an address; in the arguments of a command they mean something else."""


class UnreadableError(ValueError):
    """A value that cannot be read; the text says why and never holds the value."""


class AbsentError(UnreadableError):
    """A value that this process cannot reach, though another one may: an unset variable, no file."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret ready for use; ``file`` is the file it was read from, to be watched."""

    value: SecretStr | None
    file: Path | None = None


def is_reference(written: str) -> bool:
    """Whether ``written`` says where the secret is, instead of being it."""
    return written.startswith(("env:", "file:"))


def resolve(written: str, sources: Sequence[str], env: Mapping[str, str], folder: Path) -> Secret:
    """Turn what was written into the secret (CFG-4): ``env:NAME``, ``file:/path``, or itself.

    ``sources`` are the patterns of ``runtime.secret_sources``; an empty text means no secret at all.
    Raises UnreadableError if the place is not allowed or holds nothing usable, AbsentError if another
    environment or user may well find something there.
    """
    kind, _, place = written.partition(":")
    match kind:
        case "env":
            return Secret(_from_variable(place, sources, env))
        case "file":
            file = folder / place
            return Secret(_from_file(file, sources), file)
        case _:
            return Secret(SecretStr(written) if written else None)


def masked_address(text: str) -> str:
    """Give an address without what its query keeps secret; any other text as it is.

    That is the value of each parameter whose name sounds like a secret, and what has no name at all.
    """
    return masked_at(text, secrets_of_address(text))


def address_secrets(text: str) -> tuple[str, ...]:
    """What ``masked_address`` masks in an address, as it is written there."""
    return tuple(text[start:end] for start, end in secrets_of_address(text))


def masked_at(text: str, spans: Iterable[Span]) -> str:
    """Give a text with a mask in the place of each span; those come in their order."""
    shown, at = "", 0
    for start, end in spans:
        shown += f"{text[at:start]}{MASK}"
        at = end
    return f"{shown}{text[at:]}"


def secrets_of_address(text: str) -> tuple[Span, ...]:
    """Where in an address stands what ``masked_address`` masks."""
    address = _ADDRESS.fullmatch(text)
    if address is None:
        return ()
    found: list[Span] = []
    end = address.start(2) - 1
    for parameter in address[2].split("&"):
        end += 1 + len(parameter)
        found.append((end - len(_secret_of(parameter)), end))
    found.append((address.start(3) + 1, address.end(3)) if address[3] else (0, 0))
    return tuple((start, end) for start, end in found if start < end)


def _secret_of(parameter: str) -> str:
    """The part of a parameter that is secret; empty if none is."""
    name, equals, value = parameter.partition("=")
    if not equals:
        return name
    plain_name = unquote_plus(name)
    return value if names_secret_value(plain_name) or _GRANTS.search(plain_name) else ""


def _from_variable(name: str, sources: Sequence[str], env: Mapping[str, str]) -> SecretStr:
    if not any(fnmatchcase(f"env:{name}", source) for source in sources):
        raise UnreadableError(_not_allowed(f"env:{name}", sources))
    if not env.get(name):
        raise AbsentError(f"the variable {name} {NOT_SET}")
    return SecretStr(env[name])


def _from_file(file: Path, sources: Sequence[str]) -> SecretStr:
    folders = [source.removeprefix("file:") for source in sources if source.startswith("file:")]
    real = _without_links(file)
    if not any(real.is_relative_to(_without_links(Path(folder))) for folder in folders):
        raise UnreadableError(_not_allowed(f"file:{file}", sources))
    return SecretStr(read_value(real))


def _without_links(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        raise UnreadableError(f"{str(path)!r} is no usable path") from None


def _not_allowed(reference: str, sources: Sequence[str]) -> str:
    allowed = ", ".join(sources) or "nothing"
    return f"{reference} is not allowed by runtime.secret_sources (it allows {allowed})"


def read_value(file: Path) -> str:
    """The one value that ``file`` holds, without the line break at its end.

    Raises UnreadableError for what is absent, empty, not UTF-8, or no plain file of modest size.
    """
    try:
        if not file.is_file():
            raise AbsentError(f"there is no file {file}")
        data = file.read_bytes()
    except OSError as error:
        raise AbsentError(f"cannot read {file}: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise UnreadableError(f"{file} is larger than {MAX_FILE_BYTES} bytes")
    return _text_of(file, data)


def _text_of(file: Path, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UnreadableError(f"{file} is not UTF-8") from None
    if not text:
        raise UnreadableError(f"{file} is empty")
    return text
