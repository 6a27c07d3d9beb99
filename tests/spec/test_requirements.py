"""The requirements, the tests that claim to prove them, and the contract page agree."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.spec.contract_page import PAGE, render
from tests.spec.markers import Claim, claims, claims_below
from tests.spec.requirements import REQUIREMENTS
from tests.spec.rules_interfaces import MEASURED_BY

TESTS = Path(__file__).parents[1]
STATES = {rule.id: rule.state for rule in REQUIREMENTS}


def _listing(lines: Iterable[str]) -> str:
    return "".join(f"\n  {line}" for line in lines)


def _named(rule: str) -> str:
    """The id that a marker means: ``ASK-3`` is ``ASK-3a`` once that rule is split."""
    return f"{rule}a" if f"{rule}a" in STATES else rule


def _fault(claim: Claim) -> str | None:
    if claim.rule is None:
        return "the marker takes one plain string"
    state = STATES.get(_named(claim.rule))
    if state is None:
        return f"{claim.rule} is no rule of tests/spec/requirements.py"
    if state == "deferred":
        return f"{claim.rule} is deferred: mark it as met first"
    return None if claim.collected else f"{claim.rule} is claimed by something that is no test"


def test_every_marker_names_a_rule_that_is_kept() -> None:
    faults = [f"{c.place}: {fault}" for c in claims_below(TESTS) if (fault := _fault(c))]
    assert not faults, _listing(faults)


def test_every_rule_that_is_kept_is_named_by_a_test() -> None:
    proved = {_named(c.rule) for c in claims_below(TESTS) if c.collected and c.rule}
    proved |= {rule for rule, name in MEASURED_BY.items() if (TESTS / "benchmarks" / name).exists()}
    unproved = [r.id for r in REQUIREMENTS if r.state == "met" and r.id not in proved]
    assert not unproved, _listing(unproved)


def test_ids_are_unique_and_well_formed() -> None:
    ids = [rule.id for rule in REQUIREMENTS]
    assert sorted(ids) == sorted(set(ids))
    assert [rule for rule in ids if not re.fullmatch(r"[A-Z]{2,3}-[1-9]\d?[a-z]?", rule)] == []


def test_a_rule_is_whole_or_split_but_not_both() -> None:
    halves = {rule.id[:-1] for rule in REQUIREMENTS if rule.id[-1].isalpha()}
    assert sorted(halves & STATES.keys()) == []


def test_behaviours_are_one_to_six_complete_sentences() -> None:
    odd = [
        rule.id
        for rule in REQUIREMENTS
        if not re.fullmatch(r"(?:[A-Z0-9`].*?\.(?: |$)){1,6}", rule.behaviour)
    ]
    assert not odd, _listing(odd)


def test_the_contract_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == render(), "run make docs"


def test_claims_are_found_wherever_pytest_takes_marks() -> None:
    source = """
import pytest
pytestmark = pytest.mark.requirement("A-1")

@pytest.mark.requirement("B-1")
async def test_plain(): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("C-1"))])
def test_with_parameters(x): ...

@pytest.mark.requirement("D-1")
class TestClass:
    @pytest.mark.requirement("E-1")
    def test_inside(self): ...

@pytest.mark.requirement("F-1")
def no_test(): ...

@pytest.mark.requirement(SOME_RULE)
def test_with_a_name(): ...
"""
    assert claims(source, "t.py", test_file=True) == (
        Claim("A-1", "t.py:3", True),
        Claim("B-1", "t.py:5", True),
        Claim("C-1", "t.py:8", True),
        Claim("D-1", "t.py:11", True),
        Claim("E-1", "t.py:13", True),
        Claim("F-1", "t.py:16", False),
        Claim(None, "t.py:19", True),
    )


def test_claims_in_a_file_that_pytest_does_not_collect_prove_nothing() -> None:
    source = 'import pytest\n@pytest.mark.requirement("A-1")\ndef test_it(): ...\n'
    assert claims(source, "fakes.py", test_file=False) == (Claim("A-1", "fakes.py:2", False),)
