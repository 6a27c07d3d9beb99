"""A revoked tool is one that nobody is permitted, for as long as it is revoked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.tools import AccessSettings
from session_runtime.registry.patterns import Patterns
from session_runtime.registry.policy import Policy, compile_policy
from session_runtime.registry.revocations import Revocations
from session_runtime.types import LOCAL, Identity, Principal
from tests.registry.tools import spec

NAMES = ("files.read", "files.write", "notes.add", "web.fetch")
SPECS = tuple(map(spec, NAMES))
BOT = Principal("bot", Identity("bot"), act_for=Patterns(["*"]))


def policy_under(revocations: Revocations) -> Policy:
    return compile_policy(AccessSettings(), {}, SPECS).under(revocations)


def left(policy: Policy, principal: Principal = LOCAL) -> list[str]:
    mask = policy.permitted(principal, Identity("ann"))
    return [name for at, name in enumerate(NAMES) if mask >> at & 1]


@pytest.mark.requirement("REL-9")
@pytest.mark.parametrize("principal", [LOCAL, BOT], ids=["admin", "bot"])
async def test_nobody_may_use_what_is_revoked_until_it_is_lifted(principal: Principal) -> None:
    revocations = Revocations()
    policy = policy_under(revocations)
    await revocations.revoke("files.*")
    assert left(policy, principal) == ["notes.add", "web.fetch"]
    assert policy.why(Identity(), "files.read") == "revoked: number 1, the pattern 'files.*'"
    await revocations.revoke("*.fetch")
    assert left(policy, principal) == ["notes.add"]
    await revocations.lift(1)
    assert left(policy, principal) == ["files.read", "files.write", "notes.add"]
    assert policy.why(Identity(), "files.read") == "allowed by access.default"


@pytest.mark.requirement("REL-9")
async def test_what_is_revoked_already_is_missing_from_a_new_catalogue() -> None:
    revocations = Revocations()
    await revocations.revoke("notes.add")
    await revocations.revoke("no.such.tool")
    assert left(policy_under(revocations)) == ["files.read", "files.write", "web.fetch"]


async def test_a_pattern_names_the_tools_that_it_matches_revoked_or_not() -> None:
    revocations = Revocations()
    policy = policy_under(revocations)
    await revocations.revoke("files.read")
    assert policy.revoked.matching("files.*") == ("files.read", "files.write")
    assert policy.revoked.matching("files.read") == ("files.read",)
    assert policy.revoked.names == {"files.read"}


patterns = st.lists(
    st.one_of(
        st.sampled_from(NAMES),
        st.sampled_from(("*", "files.*", "*.re??", "[fn]*", "web.", "*.*e*", "none")),
    ),
    max_size=6,
    unique=True,
)


@given(patterns, st.integers(0, 6))
async def test_masks_and_single_names_agree_after_any_changes(
    given: list[str], lifted: int
) -> None:
    revocations = Revocations()
    policy = policy_under(revocations)
    for pattern in given:
        await revocations.revoke(pattern)
        assert policy.revoked.names == {name for name in NAMES if policy.revoked.by(name)}
    for pattern in given[:lifted]:
        await revocations.lift(pattern)
    expected = [name for name in NAMES if name not in Patterns(given[lifted:])]
    assert left(policy) == expected == [name for name in NAMES if not policy.revoked.by(name)]
