"""What is an address of a service over HTTP, for every section that names one."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

_ADDRESS: Final = re.compile(r"https?://[^/?#\s]+\S*\Z", re.IGNORECASE)


def http_address(text: str) -> SplitResult:
    """Take an address apart; ValueError for what is none."""
    if not _ADDRESS.match(text):
        raise ValueError("must be an address that begins with http:// or https://")
    try:
        address = urlsplit(text)
        _ = address.port
    except ValueError as error:
        raise ValueError("must name a host and a port up to 65535") from error
    if not is_host(address.hostname or ""):
        raise ValueError("must name a host of which each part has 1 to 63 letters")
    return address


def is_host(name: str) -> bool:
    """Whether a host of that name can be looked up; whether there is one is another question."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return bool(name) and name.isprintable()
