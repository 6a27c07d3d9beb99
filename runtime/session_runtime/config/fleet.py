"""The section [fleet]: where ``status --fleet`` asks, beside the broker of [mqtt] (NET-6).

The daemon itself makes no use of it: a key of an admin is named here, and read by that command alone.
"""

from typing import Annotated, Final

from pydantic import AfterValidator, Field, field_validator

from session_runtime.config.addresses import http_address
from session_runtime.config.secrets import is_reference
from session_runtime.config.section import Section, key, unshown

MOST_URLS: Final = 256


def replica_url(url: str) -> str:
    """Give the address of a daemon back; ValueError, which repeats nothing of it, for what is none."""
    address = http_address(url)
    if address.username or address.password:
        raise unshown("must hold no user or password: the key is what fleet.admin_from names")
    if address.query or address.fragment:
        raise unshown("must not have a query or fragment: it is the address of a daemon")
    return url


ReplicaUrl = Annotated[str, AfterValidator(replica_url)]


class FleetSettings(Section):
    """Whom `session-runtime status --fleet` asks over HTTP; the daemon makes no use of it."""

    urls: Annotated[tuple[ReplicaUrl, ...], Field(max_length=MOST_URLS)] = key(
        (), "Addresses of the replicas, one each, such as http://replica-1.example.org:8040."
    )
    admin_from: str | None = key(
        None,
        'Where the command finds the key that it sends to each of urls, as "env:NAME" or "file:/path";'
        " the key has to be that of a principal with the role admin.",
    )

    @field_validator("admin_from")
    @classmethod
    def _is_a_reference(cls, admin_from: str | None) -> str | None:
        if admin_from is not None and not is_reference(admin_from):
            raise unshown('must be "env:NAME" or "file:/path": the key itself stands nowhere')
        return admin_from
