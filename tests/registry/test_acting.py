"""For whom a principal may act, and that nothing a request states gives it a tool (NET-2)."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.http import HttpKey
from session_runtime.config.tools import AccessRule, AccessSettings
from session_runtime.errors import RequestError
from session_runtime.registry.keyring import hash_of
from session_runtime.registry.policy import Policy, acting_for, compile_policy
from session_runtime.types import LOCAL, Identity, Principal
from tests.registry.access import IDENTITIES, PRINCIPALS, RULES, SPECS, owner_of
from tests.registry.tools import spec

NOBODY = Identity()
FIELDS = ("user", "roles", "channel", "group")
DEFAULTS = st.sampled_from(["allow", "deny"])
RULE_LISTS = st.lists(RULES, max_size=4)


def policy(rules: list[AccessRule], default: str) -> Policy:
    access = {"default": default, "rules": {str(n): rule for n, rule in enumerate(rules)}}
    return compile_policy(AccessSettings.model_validate(access), {}, SPECS)


def effective(compiled: Policy, principal: Principal, stated: Identity) -> int | None:
    """What a request may use; None if it is refused."""
    try:
        return compiled.permitted(principal, acting_for(principal, stated))
    except RequestError:
        return None


def with_less(stated: Identity) -> Iterator[Identity]:
    """The identity itself, and all that state fewer of its fields."""
    for count in range(len(FIELDS) + 1):
        for left_out in combinations(FIELDS, count):
            yield replace(stated, **dict.fromkeys(left_out))


def bot(*act_for: str) -> Principal:
    return owner_of("bot", HttpKey(hash=hash_of("sr_test"), act_for=act_for))


@pytest.mark.requirement("NET-2b")
@given(RULE_LISTS, DEFAULTS, PRINCIPALS, IDENTITIES)
def test_no_field_of_a_request_gives_a_principal_a_tool_that_it_had_not_by_itself(
    rules: list[AccessRule], default: str, principal: Principal, stated: Identity
) -> None:
    compiled = policy(rules, default)
    alone = effective(compiled, principal, NOBODY)
    assert alone == compiled.mask(principal.identity or NOBODY)
    for less in with_less(stated):
        found = effective(compiled, principal, less)
        assert found is None or found & ~alone == 0


@pytest.mark.requirement("NET-2b")
@given(RULE_LISTS, DEFAULTS, PRINCIPALS, IDENTITIES.filter(lambda stated: stated != NOBODY))
def test_what_is_permitted_is_what_both_the_principal_and_the_stated_identity_may(
    rules: list[AccessRule], default: str, principal: Principal, stated: Identity
) -> None:
    compiled = policy(rules, default)
    both = compiled.mask(principal.identity or NOBODY) & compiled.mask(stated)
    assert effective(compiled, principal, stated) in (both, None)


@given(RULE_LISTS, DEFAULTS, IDENTITIES)
def test_callers_without_keys_may_what_the_identity_may_that_they_state(
    rules: list[AccessRule], default: str, stated: Identity
) -> None:
    compiled = policy(rules, default)
    assert effective(compiled, LOCAL, stated) == compiled.mask(stated)


GUEST, ADMIN, STAFF = (frozenset({role}) for role in ("guest", "admin", "staff"))


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize(
    ("stated", "channel", "lost"),
    [
        (NOBODY, "telegram", {"for.admins"}),
        (Identity("tg-17", STAFF, "telegram"), "telegram", {"for.admins"}),
        (
            Identity("tg-17", GUEST, "telegram"),
            "telegram",
            {"for.admins", "for.staff", "mail.send"},
        ),
        (Identity("tg-17", ADMIN, "telegram"), "telegram", {"for.admins", "for.staff"}),
        (Identity("tg-17"), "telegram", {"for.admins", "for.staff", "mail.send", "shop.buy"}),
        (Identity("tg-17", STAFF, "lobby"), "telegram", {"for.admins", "shop.buy"}),
        (Identity("tg-17", STAFF, "telegram"), "lobby", {"for.admins", "shop.buy"}),
        (Identity("tg-17", STAFF, "telegram"), None, {"for.admins", "shop.buy"}),
        (Identity("ann", STAFF, "telegram"), "telegram", None),
    ],
)
def test_the_examples_of_the_security_page_hold(
    stated: Identity, channel: str | None, lost: set[str] | None
) -> None:
    specs = (
        spec("for.admins", requires=ADMIN),
        spec("for.staff", requires=STAFF),
        spec("mail.send"),
        spec("shop.buy"),
    )
    guests = {"roles": ("guest",), "deny": ("mail.*",)}
    lobby = {"channels": ("lobby",), "deny": ("shop.buy",)}
    access = AccessSettings.model_validate({"rules": {"guests": guests, "lobby": lobby}})
    key = HttpKey(hash=hash_of("x"), roles=("staff",), act_for=("tg-*",), channel=channel)
    found = effective(compile_policy(access, {}, specs), owner_of("bot", key), stated)
    left = None if found is None else {s.name for at, s in enumerate(specs) if found >> at & 1}
    assert left == (None if lost is None else {s.name for s in specs} - lost)


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize(
    ("act_for", "stated", "accepted"),
    [
        ((), Identity("bot"), False),
        ((), Identity("ann"), False),
        ((), Identity(roles=frozenset()), False),
        ((), Identity(group="g"), False),
        (("ann",), Identity("ann"), True),
        (("ann",), Identity("Ann"), False),
        (("ann",), Identity("anna"), False),
        (("tg-*",), Identity("tg-1", frozenset({"staff"}), "c", "g"), True),
        (("tg-*",), Identity("tg"), False),
        (("tg-*",), Identity(channel="c"), False),
        (("?*",), Identity(channel="c"), False),
        (("?*",), Identity(""), False),
        (("?*",), Identity("\n"), True),
        (("*",), Identity(channel="c"), True),
        (("*",), Identity(""), True),
        (("x", "*"), Identity(roles=frozenset()), True),
    ],
)
def test_an_identity_is_stated_only_for_the_users_that_act_for_names(
    act_for: tuple[str, ...], stated: Identity, accepted: bool
) -> None:
    if accepted:
        assert acting_for(bot(*act_for), stated) == stated
    else:
        with pytest.raises(RequestError) as caught:
            acting_for(bot(*act_for), stated)
        assert caught.value.code == "auth.act_for"


@pytest.mark.requirement("NET-2b")
def test_a_principal_that_states_nobody_acts_for_itself() -> None:
    key = HttpKey(hash=hash_of("sr_test"), roles=("staff",), channel="web", group="g")
    itself = Identity("bot", frozenset({"staff"}), "web", "g")
    assert acting_for(owner_of("bot", key), NOBODY) == itself
    assert acting_for(bot(), NOBODY) == Identity("bot", frozenset())


@pytest.mark.requirement("NET-2b")
def test_a_refusal_names_the_principal_and_not_for_whom_it_may_act() -> None:
    with pytest.raises(RequestError) as caught:
        acting_for(bot("tg-*", "boss"), Identity("ann" * 100))
    message = str(caught.value)
    assert message.startswith("'bot' may not act for the user 'annann")
    assert "tg-" not in message
    assert "boss" not in message
    assert len(message) < 300
