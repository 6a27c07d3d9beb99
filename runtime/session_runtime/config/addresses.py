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
    return address
