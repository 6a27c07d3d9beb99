"""What is an address of a service over HTTP, or of a broker, for every section that names one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import SplitResult, urlsplit

from session_runtime.config.section import unshown

_AFTER_THE_SCHEME: Final = re.compile(r"[^/?#\s]+\S*\Z")
_BROKER_PORTS: Final[Mapping[str, int]] = MappingProxyType({"mqtt": 1883, "mqtts": 8883})


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where an MQTT broker is, and whether the connection to it is encrypted."""

    host: str
    port: int
    encrypted: bool


def http_address(text: str) -> SplitResult:
    """Take an address apart; ValueError for what is none."""
    return _address(text, "http", "https")


def broker_address(text: str) -> BrokerAddress:
    """Take the address of a broker apart; ValueError for what is none, which repeats no password."""
    if "@" in text:
        raise unshown("must hold no user or password: give them as mqtt.username and mqtt.password")
    address = _address(text, *_BROKER_PORTS)
    if any(mark in text.partition("://")[2] for mark in "/?#"):
        raise ValueError("must end after host and port, as in mqtt://broker.example.org:1883")
    scheme = address.scheme.lower()
    port = _BROKER_PORTS[scheme] if address.port is None else address.port
    return BrokerAddress(address.hostname or "", port, encrypted=scheme == "mqtts")


def _address(text: str, *schemes: str) -> SplitResult:
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in schemes or not _AFTER_THE_SCHEME.match(rest):
        begins = " or ".join(f"{each}://" for each in schemes)
        raise ValueError(f"must be an address that begins with {begins}")
    fault = "must name a host, and a port from 1 to 65535 or none"
    try:
        address = urlsplit(text)
        usable = address.hostname and address.port != 0
    except ValueError as error:
        raise ValueError(fault) from error
    if not usable:
        raise ValueError(fault)
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
