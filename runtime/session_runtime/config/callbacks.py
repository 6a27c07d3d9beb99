"""The section [callbacks]: where results are sent of asks that go on alone (SEC-3).

What is sent, and how often it is tried, is decided in ``callbacks``.
"""

from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator

from session_runtime.config.addresses import is_host
from session_runtime.config.secrets import is_reference
from session_runtime.config.section import Name, Seconds, Section, key
from session_runtime.wire.callback import secret_bytes

MOST_TRIES: Final = 20


def _is_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = (
            parts.scheme in ("http", "https") and is_host(parts.hostname or "") and parts.port != 0
        )
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("is no address: give one such as https://bot.example.org/results")
    if "@" in parts.netloc or parts.fragment:
        raise ValueError(
            "must not hold a name, a password or a #fragment: secret signs what is sent"
        )
    return url


class Callback(Section):
    """One address that results are sent to, signed, when an ask or a call names it."""

    url: Annotated[str, AfterValidator(_is_address)] = key(
        None,
        "Where results are sent, by POST; redirects are not followed.",
        acts="now",
        in_repr=False,
    )
    secret: SecretStr = key(
        None,
        'What results are signed with, best as "env:NAME" or "file:/path": "whsec_" and the base64 of 24 to'
        " 64 random bytes.",
        acts="now",
    )
    principals: tuple[Name, ...] = key(
        ("*",),
        "Patterns of the principals that may name it; for all others it is not there.",
        acts="now",
    )
    timeout_s: Seconds = key(10.0, "How long each attempt may take, in seconds.", acts="now")
    tries: Annotated[int, Field(ge=1, le=MOST_TRIES)] = key(
        6,
        "How often a result is sent until it is taken; the pauses grow up to five minutes.",
        acts="now",
    )

    @field_validator("url", mode="before")
    @classmethod
    def _is_given(cls, url: object) -> object:
        if url is None:
            raise ValueError("is missing: give the address that results are sent to")
        return url

    @field_validator("secret", mode="before")
    @classmethod
    def _is_a_secret(cls, secret: object) -> object:
        if not isinstance(secret, SecretStr):
            raise ValueError('is missing: give it as "env:NAME" or "file:/path"')
        written = secret.get_secret_value()
        if not is_reference(written) and secret_bytes(written) is None:
            raise ValueError(
                'must be "whsec_" and the base64 of 24 to 64 random bytes, as'
                ' echo "whsec_$(openssl rand -base64 32)" prints it'
            )
        return secret
