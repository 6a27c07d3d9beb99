"""The section [mqtt]: the MQTT door, its broker, and whose signatures it takes (NET-6).

What a signer may do is configured in [http.keys]; how messages are carried is decided in ``transports``.
"""

import importlib.util
import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator

from session_runtime.config.addresses import broker_address
from session_runtime.config.http import HttpSettings, PrincipalName
from session_runtime.config.secrets import is_reference
from session_runtime.config.section import (
    Count,
    Name,
    Seconds,
    Section,
    Whole,
    key,
    read_only,
    table,
)
from session_runtime.wire.hosts import is_loopback
from session_runtime.wire.mqtt import LEAST_SECRET_CHARS, is_prefix

_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def _is_broker(url: str) -> str:
    broker_address(url)
    return url


class MqttSigner(Section):
    """The signing secret of one principal of [http.keys], which bears the same name."""

    secret: SecretStr = key(
        None,
        "What the principal signs its messages with, 32 characters or more that nobody can guess, best as"
        ' "env:NAME" or "file:/path". Not its key.',
    )

    @field_validator("secret", mode="before")
    @classmethod
    def _is_long(cls, secret: object) -> object:
        if not isinstance(secret, SecretStr):
            raise ValueError('is missing: give it as "env:NAME" or "file:/path"')
        written = secret.get_secret_value()
        if len(written) < LEAST_SECRET_CHARS and not is_reference(written):
            raise ValueError(f"is shorter than {LEAST_SECRET_CHARS} characters")
        return secret


class MqttSettings(Section):
    """Asks by an MQTT 5 broker (NET-6)."""

    signers: Annotated[Mapping[PrincipalName, MqttSigner], AfterValidator(read_only)] = table(
        "Who may ask once there are keys: principals of [http.keys], under the same names."
    )
    enabled: bool = key(
        False,
        "Whether asks are taken from the broker; needs the extra mqtt.",
        acts="restart",
    )
    url: Annotated[str, AfterValidator(_is_broker)] = key(
        "mqtt://127.0.0.1:1883",
        "The broker's address: mqtt://host:port, or mqtts://host:port for an encrypted connection, where the"
        " broker's certificate is always checked. Without a port it is 1883, or 8883 with mqtts. Without"
        " signers it must be a loopback address, as every publisher is admin then.",
        acts="restart",
    )
    tls_ca: Path | None = key(
        None,
        "A PEM file of authorities that the broker's certificate may be from; unset: those of the"
        " system. Read for each connection.",
        acts="restart",
    )
    tls_cert: Path | None = key(
        None,
        "A PEM file with the certificate, and its chain, that the daemon shows to the broker.",
        acts="restart",
    )
    tls_key: Path | None = key(
        None,
        "A PEM file with the private key of tls_cert; unset: it is in there too.",
        acts="restart",
    )
    username: Name | None = key(
        None, "Name that the broker knows the daemon by; used from the next connection on."
    )
    password: SecretStr | None = key(
        None,
        'Password of that name, best as "env:NAME" or "file:/path"; used from the next connection on.',
    )
    prefix: Name = key(
        "session-runtime", "The topic under which all topics of the daemon lie.", acts="restart"
    )
    group: str = key(
        "replicas",
        'Daemons of the same group share the asks between them. "" takes all asks alone, for a broker'
        " without shared subscriptions.",
        acts="restart",
    )
    client_id: Name | None = key(
        None,
        "Name of this replica, also at the broker, which no other may have; unset: made from the host's"
        " name and runtime.state_dir.",
        acts="restart",
    )
    keepalive_s: Annotated[int, Field(ge=1, le=65535)] = key(
        30,
        "How long the connection may be silent before it is tested, in seconds.",
        acts="restart",
    )
    session_expiry_s: Whole = key(
        0,
        "How long the broker keeps what was sent to a replica whose connection broke, in seconds. Its share"
        " of new asks goes to no other one meanwhile, so that they wait. 0 keeps nothing, and clients send"
        " again.",
        acts="restart",
    )
    max_payload_bytes: Count = key(
        1_000_000,
        "The largest request that is read and the largest answer that is sent, in bytes; not more than"
        " the broker passes on.",
        acts="restart",
    )
    dedupe_window_s: Seconds = key(
        600.0,
        "How long an ask is remembered, so that the same one is answered without a second run, in seconds.",
        acts="restart",
    )
    dedupe_window_asks: Count = key(
        65_536,
        "How many asks are remembered at most; beyond it the answer is busy.window.",
        acts="restart",
    )
    dedupe_window_bytes: Count = key(
        33_554_432,
        "How many bytes of answers are kept at most, the newest ones; an ask whose answer is gone is not"
        " run again, but answered by mqtt.answer_gone.",
        acts="restart",
    )
    max_signed_s: Seconds = key(
        300.0,
        "How far ahead a signature may expire, in seconds; not more than dedupe_window_s.",
        acts="restart",
    )

    @field_validator("enabled")
    @classmethod
    def _library_is_there(cls, enabled: bool) -> bool:
        if enabled and importlib.util.find_spec("aiomqtt") is None:
            raise ValueError(
                "needs aiomqtt, which is not installed: pip install '.[mqtt]' in the source tree of"
                " session-runtime"
            )
        return enabled

    @field_validator("prefix")
    @classmethod
    def _is_a_topic(cls, prefix: str) -> str:
        if not is_prefix(prefix):
            raise ValueError(
                "must be at most 8 names joined by /, without spaces, +, # and $, none of them empty"
            )
        return prefix

    @field_validator("group", "client_id")
    @classmethod
    def _is_a_word(cls, word: str | None) -> str | None:
        if word and not _WORD.fullmatch(word):
            raise ValueError("use up to 64 letters, digits, _, - and .")
        return word

    @field_validator("tls_ca", "tls_cert", "tls_key")
    @classmethod
    def _encrypts(cls, file: Path | None, info: ValidationInfo) -> Path | None:
        url = info.data.get("url")
        if file is not None and url is not None and not broker_address(url).encrypted:
            raise ValueError(
                "is of no use with an address of mqtt://: write mqtts:// in mqtt.url, or leave this out"
            )
        return file

    @field_validator("tls_key")
    @classmethod
    def _belongs_to_a_certificate(cls, tls_key: Path | None, info: ValidationInfo) -> Path | None:
        if tls_key is not None and info.data.get("tls_cert") is None:
            raise ValueError("needs tls_cert, whose key it is")
        return tls_key

    @field_validator("password")
    @classmethod
    def _has_a_name(cls, password: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if password is not None and info.data.get("username") is None:
            raise ValueError("needs username, whose password it is")
        return password

    @field_validator("max_signed_s")
    @classmethod
    def _within_the_window(cls, max_signed_s: float, info: ValidationInfo) -> float:
        window_s = info.data.get("dedupe_window_s")
        if window_s is not None and max_signed_s > window_s:
            raise ValueError(
                f"must not be more than dedupe_window_s ({window_s:g}): what is forgotten could be sent"
                " again"
            )
        return max_signed_s


def tls_context(mqtt: MqttSettings) -> ssl.SSLContext | None:
    """Read what connections are encrypted with, None if they are not; OSError if that cannot be read."""
    if not broker_address(mqtt.url).encrypted:
        return None
    context = ssl.create_default_context(cafile=mqtt.tls_ca)
    if mqtt.tls_cert is not None:
        context.load_cert_chain(mqtt.tls_cert, mqtt.tls_key)
    return context


def mqtt_faults(mqtt: MqttSettings, http: HttpSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find what must not be of [mqtt] and [http.keys] together: pairs of a key and what is wrong with it."""
    if mqtt.enabled and not http.keys and not is_loopback(broker_address(mqtt.url).host):
        yield (
            ("mqtt", "url"),
            "publishers need no signature, so only a broker on a loopback address is allowed: for others,"
            " set keys (session-runtime keys add NAME) and [mqtt.signers.NAME]",
        )


def mqtt_warnings(mqtt: MqttSettings, http: HttpSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find signers and principals that lack each other, which lets nobody in: pairs of a key and a text.

    One of them has to be there first, so that this is no fault.
    """
    for name in mqtt.signers:
        if name not in http.keys:
            told = (
                f"nobody can sign as {name!r}, as there is no such principal in [http.keys]:"
                f" session-runtime keys add {name}"
            )
            yield ("mqtt", "signers", name, "secret"), told
    if mqtt.enabled and http.keys and not mqtt.signers:
        yield (
            ("mqtt", "enabled"),
            "there are keys, so that nobody may ask without a signature: add [mqtt.signers.NAME] for"
            " principals that may, or set this to false",
        )
