"""The section [http]: the HTTP door, and the keys of those who may use it (NET-2).

What a key's owner may do is decided in ``registry``.
"""

import importlib.util
import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from session_runtime.config.section import Count, Name, Section, key, read_only, table, unshown
from session_runtime.limits import Limits
from session_runtime.types import LOCAL
from session_runtime.wire.hosts import is_loopback

KEY_SHAPE: Final = re.compile(r"sr_[A-Za-z0-9_-]{40,}")
"""What a key looks like anywhere in a text, for whoever has to keep it out."""

_MIB: Final = 1024 * 1024
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_PRINCIPAL: Final = re.compile(r"[\w.@-]{1,64}")


def _can_own_a_key(name: str) -> str:
    if not _PRINCIPAL.fullmatch(name):
        raise ValueError("cannot own a key: use up to 64 letters, digits, _, -, . and @")
    if name == LOCAL.name:
        raise ValueError("cannot own a key: that is the name of who needs none, on this machine")
    return name


PrincipalName = Annotated[str, AfterValidator(_can_own_a_key)]


class HttpKey(Section):
    """The key of one principal: who sends it may do what the principal may, whomever it acts for."""

    hash: str = key(
        None,
        'The key\'s SHA-256, as "sha256:" and 64 hexadecimal digits; the key itself stands nowhere.'
        " `session-runtime keys add` makes both.",
    )
    roles: tuple[Name, ...] = key(
        (), "Roles of the principal; admin lets it see and change what concerns the daemon itself."
    )
    act_for: tuple[Name, ...] = key(
        (), "Patterns of the users that it may act for; without any it speaks for itself only."
    )
    channel: Name | None = key(None, "Channel of the principal; unset: unknown.")
    group: Name | None = key(None, "Group of the principal; unset: unknown.")
    max_concurrent_asks: Count | None = key(
        None,
        "Asks of the principal that may run at the same time; further ones wait for their turn. Unset:"
        " runtime.max_concurrent_asks_per_principal.",
    )
    asks_per_minute: Count | None = key(
        None, "Asks of the principal per minute. Unset: limits.asks_per_minute."
    )
    tokens_per_day: Count | None = key(
        None, "Tokens that its asks may take per day. Unset: limits.tokens_per_day."
    )
    user_asks_per_minute: Count | None = key(
        None, "Asks of each of its users per minute. Unset: limits.user_asks_per_minute."
    )
    user_tokens_per_day: Count | None = key(
        None, "Tokens of each of its users per day. Unset: limits.user_tokens_per_day."
    )
    user_max_concurrent_asks: Count | None = key(
        None,
        "Asks of each of its users that may run at the same time. Unset: limits.user_max_concurrent_asks.",
    )

    @property
    def limits(self) -> Limits:
        """What is stated of this principal alone."""
        return Limits(
            self.asks_per_minute,
            self.tokens_per_day,
            self.user_asks_per_minute,
            self.user_tokens_per_day,
            self.user_max_concurrent_asks,
        )

    @field_validator("hash", mode="before")
    @classmethod
    def _is_a_hash(cls, given: object) -> object:
        if given is None:
            raise ValueError("is missing: session-runtime keys add NAME makes a key and its hash")
        if not isinstance(given, str) or not _HASH.fullmatch(given):
            raise unshown(
                'must be "sha256:" and 64 hexadecimal digits in small letters; what was given is not'
                " repeated, as it may be the key itself: session-runtime keys add NAME makes both"
            )
        return given


class InvokeSettings(Section):
    """Tools that callers may call by their names, without a model; only those that they may use anyway."""

    enabled: bool = key(False, "Whether POST /v1/tools/NAME/invoke is there.", acts="now")
    allow: tuple[Name, ...] = key(
        (), "Patterns of names of tools that may be called so; without any, none may.", acts="now"
    )
    deny: tuple[Name, ...] = key(
        (), "Patterns of names of tools that may not; these win.", acts="now"
    )
    max_result_chars: Count = key(
        200_000,
        "The longest result that is given whole, in characters; a longer one is summed up.",
        acts="now",
    )


class HttpSettings(Section):
    """The HTTP door."""

    keys: Annotated[Mapping[PrincipalName, HttpKey], AfterValidator(read_only)] = table(
        "Who may call, each under a name of your choice."
    )
    host: Name = key(
        "127.0.0.1",
        "The address to listen on. Without keys it must be a loopback address, as every caller is"
        " admin then.",
        acts="restart",
    )
    port: Annotated[int, Field(ge=0, le=65535)] = key(
        8040, "The port to listen on; 0 takes any free one.", acts="restart"
    )
    max_body_bytes: Count = key(
        10 * _MIB, "The largest request body that is read, in bytes.", acts="restart"
    )

    mcp: bool = key(
        False,
        "Whether /mcp offers the tools to MCP clients, to each of them what it may use; needs the extra"
        " mcp.",
        acts="now",
    )

    invoke: InvokeSettings = Field(default_factory=InvokeSettings)

    @field_validator("mcp")
    @classmethod
    def _sdk_is_there(cls, mcp: bool) -> bool:
        if mcp and importlib.util.find_spec("mcp") is None:
            raise ValueError(
                "needs the MCP SDK, which is not installed: pip install '.[mcp]' in the source tree of"
                " session-runtime"
            )
        return mcp

    @field_validator("keys")
    @classmethod
    def _one_owner_each(cls, keys: Mapping[str, HttpKey]) -> Mapping[str, HttpKey]:
        owners: dict[str, str] = {}
        for name, each in keys.items():
            other = owners.setdefault(each.hash, name)
            if other != name:
                raise ValueError(
                    f"{other} and {name} have the same hash: give each a key of its own"
                )
        return keys

    @field_validator("host")
    @classmethod
    def _loopback_without_keys(cls, host: str, info: ValidationInfo) -> str:
        keys_are_good = "keys" in info.data
        if keys_are_good and not info.data["keys"] and not is_loopback(host):
            raise ValueError(
                "callers need no key, so only a loopback address is allowed:"
                " 127.0.0.1, ::1 or localhost; for others, set keys: session-runtime keys add NAME"
            )
        return host
