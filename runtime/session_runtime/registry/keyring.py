"""The keys of one configuration and whom each lets in (NET-2); where a key is looked for is up to doors."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from session_runtime.config.http import HttpKey
from session_runtime.registry.patterns import Patterns
from session_runtime.types import Identity, Principal

ADMIN: Final = "admin"
"""The role of those who may see and change what concerns the daemon itself."""

_PREFIX: Final = "sr_"
_SECRET_BYTES: Final = 32
_ALGORITHM: Final = "sha256:"


@dataclass(frozen=True, slots=True)
class Keyring:
    """The digests of all keys, each with the principal that it belongs to; false without a key."""

    owners: tuple[tuple[bytes, Principal], ...] = ()

    def __len__(self) -> int:
        return len(self.owners)

    def owner(self, key: bytes) -> Principal | None:
        """The principal of a key, None for one that is not known.

        It takes the same time for every key: all digests are compared, each in constant time.
        """
        return self.holder(digest_of(key))

    def holder(self, digest: bytes) -> Principal | None:
        """The principal of the key with this digest, as ``digest_of`` gives it; as ``owner``."""
        found = None
        for known, principal in self.owners:
            if hmac.compare_digest(known, digest):
                found = principal
        return found

    def named(self, name: str) -> Principal | None:
        """The principal of that name, for a door that knows by other means whom it is spoken to by."""
        return next((each for _, each in self.owners if each.name == name), None)


def open_keyring(keys: Mapping[str, HttpKey]) -> Keyring:
    """Make [http.keys] ready for use."""
    return Keyring(tuple((_digest(key.hash), _principal(name, key)) for name, key in keys.items()))


def new_key() -> str:
    """A key that nobody can guess: 256 random bits, so that a plain hash of it keeps it secret."""
    return _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def digest_of(key: bytes) -> bytes:
    """What stands for a key where it is not kept itself."""
    return hashlib.sha256(key).digest()


def hash_of(key: str) -> str:
    """What the configuration holds of a key."""
    return _ALGORITHM + digest_of(key.encode()).hex()


def _digest(written: str) -> bytes:
    return bytes.fromhex(written.removeprefix(_ALGORITHM))


def _principal(name: str, key: HttpKey) -> Principal:
    roles = frozenset(key.roles)
    return Principal(
        name,
        Identity(name, roles, key.channel, key.group),
        Patterns(key.act_for),
        ADMIN in roles,
        key.max_concurrent_asks,
        key.limits,
    )
