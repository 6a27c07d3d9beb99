"""A key lets in whom it belongs to, no other key does, and it is known by its hash alone (NET-2)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.http import KEY_SHAPE, HttpKey
from session_runtime.registry.keyring import Keyring, hash_of, new_key, open_keyring
from session_runtime.trace.redact import redact_text
from session_runtime.types import Identity

KEYS = {name: f"sr_{name:x<43}" for name in ("first", "second", "third")}


def keyring(**more: object) -> Keyring:
    return open_keyring({name: HttpKey(hash=hash_of(key), **more) for name, key in KEYS.items()})


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("name", KEYS)
def test_a_key_belongs_to_its_principal_wherever_it_stands(name: str) -> None:
    owner = keyring(roles=("staff",), channel="web", group="g").owner(KEYS[name].encode())
    assert owner is not None
    assert (owner.name, owner.admin) == (name, False)
    assert owner.identity == Identity(name, frozenset({"staff"}), "web", "g")


@pytest.mark.requirement("NET-2b")
@given(st.binary(max_size=60) | st.sampled_from([k.encode() for k in KEYS.values()]))
def test_no_other_bytes_are_a_key(given: bytes) -> None:
    owner = keyring().owner(given)
    names = {key.encode(): name for name, key in KEYS.items()}
    assert (owner.name if owner else None) == names.get(given)


class Watched(tuple[Any, ...]):
    """Owners that note how many of them were looked at."""

    seen = 0

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            self.seen += 1
            yield each


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("key", [*KEYS.values(), "sr_nobody", ""])
def test_every_key_is_compared_with_all_hashes(key: str) -> None:
    owners = Watched(keyring().owners)
    Keyring(owners).owner(key.encode())
    assert owners.seen == len(KEYS)


def test_a_hash_is_no_key() -> None:
    written = hash_of(KEYS["first"])
    assert keyring().owner(written.encode()) is None
    assert keyring().owner(bytes.fromhex(written.removeprefix("sha256:"))) is None


def test_the_role_admin_makes_an_admin() -> None:
    owner = keyring(roles=("staff", "admin")).owner(KEYS["second"].encode())
    assert owner is not None
    assert owner.admin is True


def test_without_a_key_a_keyring_is_false_and_knows_nobody() -> None:
    assert not open_keyring({})
    assert keyring()
    assert Keyring().owner(b"") is None


def test_new_keys_differ_and_are_known_by_their_shape_wherever_they_turn_up() -> None:
    keys = {new_key() for _ in range(1000)}
    assert len(keys) == 1000
    for key in keys:
        assert re.fullmatch(r"sr_[A-Za-z0-9_-]{43}", key)
        assert KEY_SHAPE.search(f"x {key}.")
        assert redact_text(f"call it with {key} now") == "call it with *** now"
