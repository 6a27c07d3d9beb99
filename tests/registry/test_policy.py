"""What an operator's rules, required roles and features leave of the tools for one identity."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.tools import AccessRule, AccessSettings
from session_runtime.registry.policy import Policy, compile_policy
from session_runtime.registry.spec import Annotations, ToolSpec
from session_runtime.types import Identity
from tests.registry.access import IDENTITIES, RULES, SPECS
from tests.registry.tools import spec

NAMES = [each.name for each in SPECS]
EVERYTHING = ["files.delete", "files.read", "send_message"]


def policy(default: str = "allow", *, features: Mapping[str, bool] = {}, **rules: Any) -> Policy:
    access = AccessSettings.model_validate({"default": default, "rules": rules})
    return compile_policy(access, features, SPECS)


def left(compiled: Policy, identity: Identity) -> list[str]:
    mask = compiled.mask(identity)
    return [each.name for position, each in enumerate(SPECS) if mask >> position & 1]


def test_without_rules_the_default_decides() -> None:
    assert left(policy("allow"), Identity()) == EVERYTHING
    assert left(policy("deny"), Identity()) == []


@pytest.mark.requirement("REG-3")
@pytest.mark.parametrize(
    ("roles", "permitted"),
    [(None, False), (frozenset(), False), ({"user"}, False), ({"user", "admin"}, True)],
)
def test_a_tool_that_requires_roles_needs_every_one_of_them(roles: Any, permitted: bool) -> None:
    identity = Identity(roles=roles if roles is None else frozenset(roles))
    assert ("admin.reset" in left(policy(), identity)) is permitted


@pytest.mark.requirement("REG-3")
@pytest.mark.parametrize(
    ("features", "permitted"), [({}, False), ({"beta": False}, False), ({"beta": True}, True)]
)
def test_a_tool_with_a_feature_is_there_while_the_feature_is_on(
    features: Mapping[str, bool], permitted: bool
) -> None:
    assert ("beta.try" in left(policy(features=features), Identity())) is permitted


@pytest.mark.requirement("RTE-9")
@pytest.mark.parametrize(
    ("setting", "there"), [("confirm", True), ("deny", False), ("allow", True)]
)
def test_destructive_tools_are_not_there_where_they_are_denied(setting: str, there: bool) -> None:
    access = AccessSettings.model_validate(
        {"destructive": setting, "rules": {"all": {"allow": ("*",)}}}
    )
    wipe = spec("disk.wipe", annotations=Annotations(destructive=True))
    compiled = compile_policy(access, {}, (*SPECS, wipe))
    assert (compiled.mask(Identity()) >> len(SPECS) & 1 == 1) is there
    why = compiled.why(Identity(), "disk.wipe")
    assert (why == "denied by access.destructive, because it is destructive") is not there


def test_no_rule_gives_back_what_a_feature_or_a_required_role_takes() -> None:
    assert left(policy("deny", all={"allow": ("*",)}), Identity()) == EVERYTHING


def test_an_allow_rule_needs_all_its_conditions_to_hold() -> None:
    rule = {
        "roles": ("staff", "boss"),
        "users": ("al*",),
        "channels": ("ops",),
        "allow": ("files.*",),
    }
    compiled = policy("deny", staff=rule)
    files = ["files.delete", "files.read"]
    assert left(compiled, Identity("alice", frozenset({"staff"}), "ops")) == files
    assert left(compiled, Identity("bob", frozenset({"staff"}), "ops")) == []
    assert left(compiled, Identity("alice", frozenset({"guest"}), "ops")) == []
    assert left(compiled, Identity("alice", frozenset({"staff"}))) == []


def test_a_denial_wins_over_every_allowance() -> None:
    compiled = policy(yes={"allow": ("*",)}, no={"deny": ("files.delete",)})
    assert left(compiled, Identity("alice")) == ["files.read", "send_message"]


@pytest.mark.parametrize(
    ("identity", "denied"),
    [
        (Identity("eve", frozenset({"guest"}), "web"), True),
        (Identity("eve", frozenset({"staff"}), "web"), False),
        (Identity("eve", None, "web"), True),
        (Identity(None, None, None), True),
        (Identity("adam", None, None), False),
    ],
)
def test_a_denial_applies_unless_a_condition_is_known_not_to_hold(
    identity: Identity, denied: bool
) -> None:
    rule = {"roles": ("guest",), "users": ("e*",), "channels": ("web",), "deny": ("files.*",)}
    assert ("files.read" not in left(policy(guests=rule), identity)) is denied


def test_patterns_count_capitals() -> None:
    compiled = policy("deny", one={"users": ("Alice",), "allow": ("files.*", "SEND*")})
    assert left(compiled, Identity("Alice")) == ["files.delete", "files.read"]
    assert left(compiled, Identity("alice")) == []


@pytest.mark.parametrize(
    ("identity", "name", "reason"),
    [
        (Identity("eve"), "files.delete", "denied by access.rules.careful"),
        (
            Identity(),
            "files.delete",
            "denied by access.rules.careful, because the caller does not state whom it is about",
        ),
        (Identity("eve"), "files.read", "allowed by access.rules.readers"),
        (Identity("eve"), "send_message", "denied by access.default"),
        (Identity("eve"), "admin.reset", "denied: it requires the role 'admin'"),
        (Identity("eve"), "beta.try", "off: its feature 'beta' is not on in [features]"),
        (Identity("eve"), "gone", "there is no tool 'gone'"),
    ],
)
def test_operators_can_ask_which_rule_decided(identity: Identity, name: str, reason: str) -> None:
    compiled = policy(
        "deny",
        careful={"users": ("eve",), "deny": ("files.delete",)},
        readers={"allow": ("files.*", "admin.*")},
    )
    assert compiled.why(identity, name) == reason


def by_the_book(rules: list[AccessRule], default: str, identity: Identity, tool: ToolSpec) -> bool:
    """Whether a tool is permitted, worked out one tool and one rule at a time."""
    if tool.feature is not None or not tool.requires <= (identity.roles or frozenset()):
        return False
    allowed = default == "allow"
    for rule in rules:
        answers: list[bool | None] = []
        if rule.roles:
            roles = identity.roles
            answers.append(None if roles is None else any(role in roles for role in rule.roles))
        for patterns, stated in ((rule.users, identity.user), (rule.channels, identity.channel)):
            if patterns:
                known = stated is not None
                answers.append(
                    any(fnmatchcase(stated or "", p) for p in patterns) if known else None
                )
        if False not in answers and any(fnmatchcase(tool.name, p) for p in rule.deny):
            return False
        if all(answers) and any(fnmatchcase(tool.name, p) for p in rule.allow):
            allowed = True
    return allowed


@given(st.lists(RULES, max_size=4), st.sampled_from(["allow", "deny"]), IDENTITIES)
def test_bit_sets_say_the_same_as_the_rules_read_one_by_one(
    rules: list[AccessRule], default: str, identity: Identity
) -> None:
    access = AccessSettings.model_validate(
        {"default": default, "rules": {str(n): rule for n, rule in enumerate(rules)}}
    )
    compiled = compile_policy(access, {}, SPECS)
    expected = [each.name for each in SPECS if by_the_book(rules, default, identity, each)]
    assert left(compiled, identity) == expected
    said = {name: compiled.why(identity, name).startswith("allowed") for name in NAMES}
    assert [name for name in NAMES if said[name]] == expected
