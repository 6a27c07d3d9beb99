"""Secrets: values that stand in a variable or a file of their own, and who may be asked for them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote_plus

from pydantic import SecretStr

from session_runtime.config.keys import sounds_secret
from session_runtime.config.origin import MASK

MAX_FILE_BYTES = 1024 * 1024
NOT_SET = "is not set"
"""How the fault of a variable ends that a process does not have."""

_ADDRESS = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^\s?#]*)\?([^\s#]*)(#\S*)?")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_SECRET_WORDS = frozenset({"code", "pwd", "sas", "sig"})
_SECRET_PARTS = re.compile("access|cred|session|signature", re.IGNORECASE)


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
    address = _ADDRESS.fullmatch(text)
    if address is None:
        return text
    query = "&".join(map(_masked_parameter, address[2].split("&")))
    return f"{address[1]}?{query}{f'#{MASK}' if address[3] else ''}"


def address_secrets(text: str) -> tuple[str, ...]:
    """What ``masked_address`` masks in an address, as it is written there."""
    address = _ADDRESS.fullmatch(text)
    if address is None:
        return ()
    found = (*map(_secret_of, address[2].split("&")), (address[3] or "")[1:])
    return tuple(secret for secret in found if secret)


def _masked_parameter(parameter: str) -> str:
    secret = _secret_of(parameter)
    return f"{parameter.removesuffix(secret)}{MASK}" if secret else parameter


def _secret_of(parameter: str) -> str:
    """The part of a parameter that is secret; empty if none is."""
    name, equals, value = parameter.partition("=")
    if not equals:
        return name
    plain_name = unquote_plus(name)
    words = {word.lower() for word in _WORD.findall(plain_name)}
    secret = sounds_secret(plain_name) or _SECRET_PARTS.search(plain_name) or words & _SECRET_WORDS
    return value if secret else ""


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
