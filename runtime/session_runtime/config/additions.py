"""What an operator may add to the requests of a profile: headers and fields of the body.

Where they go in a request is decided in ``models``.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, SecretStr

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE: Final = re.compile(r"[!-~](?:[\t -~]*[!-~])?")
_OWN_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_TALK: Final = "the runtime writes the conversation itself"
_TOOLS: Final = "the runtime decides which tools are sent"
_CHAIN: Final = "the runtime decides how turns are linked"
_OWN_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model": "set the profile's model instead",
        "stream": "set the profile's stream instead",
        "stream_options": "set the profile's stream instead",
        "temperature": "set the profile's temperature instead",
        "max_tokens": "set the profile's max_output_tokens instead",
        "max_completion_tokens": "set the profile's max_output_tokens instead",
        "max_output_tokens": "set the profile's key of this name instead",
        "messages": _TALK,
        "input": _TALK,
        "system": _TALK,
        "instructions": "set ask.system_prompt instead",
        "tools": _TOOLS,
        "functions": _TOOLS,
        "previous_response_id": _CHAIN,
        "conversation": _CHAIN,
        "store": _CHAIN,
        "include": _CHAIN,
        "background": "the runtime waits for each reply",
    }
)


def _header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError("is no name of a header: use letters, digits and -")
    if name.lower() in _OWN_HEADERS:
        raise ValueError("is a header that the runtime sets itself; leave it out")
    return name


def _given(value: object) -> object:
    if value is None:
        raise ValueError("must not be empty; leave the header out instead")
    return value


def header_value(value: SecretStr) -> SecretStr:
    """Give a value that a header can hold; ValueError says what it must be."""
    if not _HEADER_VALUE.fullmatch(value.get_secret_value()):
        raise ValueError(
            "must be printable ASCII on one line, without blanks at its beginning and end"
        )
    return value


def _body_field(name: str) -> str:
    if name in _OWN_FIELDS:
        raise ValueError(f"cannot be added to the body: {_OWN_FIELDS[name]}")
    return name


HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[SecretStr, BeforeValidator(_given), AfterValidator(header_value)]
BodyField = Annotated[str, AfterValidator(_body_field)]
