"""Canonical names break nothing, and every tool has a wire name of its own that leads back to it."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.registry.names import (
    MAX_NAME_LENGTH,
    TOOL_SEARCH,
    build_wire_names,
    canonical_name,
    meets_tool_search,
    name_fault,
)

WIRE = re.compile(r"[A-Za-z0-9_-]{1,64}")
LIKELY_TO_MEET = st.text("ab.AB_-天", min_size=1, max_size=6)
NAMES = st.sets(LIKELY_TO_MEET | st.text(min_size=1, max_size=100).map(canonical_name), max_size=12)
SEPARATORS = st.sampled_from(["__", "_", "-", "-_-", ".", ""])


@pytest.mark.requirement("ASK-12a")
@pytest.mark.parametrize(
    ("native", "canonical"),
    [
        ("files.read", "files.read"),
        ("get member,info", "get_member_info"),
        ("a'b\"c`d<e>f", "a_b_c_d_e_f"),
        ("tab\there\x00\x7f", "tab_here__"),
        ("zero\u200bwidth\u3000blank", "zero_width_blank"),
        ("查询.天气", "查询.天气"),
        ("cafe\u0301", "café"),
        ("greek\u1fefvaria", "greek_varia"),
    ],
)
def test_what_breaks_names_becomes_an_underscore(native: str, canonical: str) -> None:
    assert canonical_name(native) == canonical


@given(st.text())
def test_a_canonical_name_stays_as_it_is_and_holds_nothing_that_breaks(native: str) -> None:
    name = canonical_name(native)
    assert canonical_name(name) == name
    assert not [
        char for char in name if char in " ,'\"`<>" or unicodedata.category(char)[0] in "CZ"
    ]


@pytest.mark.requirement("REG-4")
@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("a", True),
        ("天气", True),
        ("x" * MAX_NAME_LENGTH, True),
        ("x" * (MAX_NAME_LENGTH + 1), False),
        ("", False),
        ("._-", False),
    ],
)
def test_a_name_must_be_readable_and_bounded(name: str, usable: bool) -> None:
    assert (name_fault(name) is None) is usable


@pytest.mark.requirement("ASK-12a")
@given(NAMES, SEPARATORS)
def test_wire_names_are_accepted_by_providers_unique_and_lead_back(
    names: set[str], separator: str
) -> None:
    wire = build_wire_names(names, separator)
    encoded = [wire.encode(name) for name in names]
    assert all(WIRE.fullmatch(each) for each in encoded)
    assert len({each.casefold() for each in encoded}) == len(names)
    assert [wire.decode(each) for each in encoded] == list(names)


@pytest.mark.requirement("ASK-12a")
@given(st.permutations(["a.b", "a_b", "A.B", "a__b", "天气", "天_气", "tool.search", "x" * 80]))
def test_wire_names_do_not_depend_on_the_order_of_the_tools(names: list[str]) -> None:
    assert build_wire_names(names, "_") == build_wire_names(sorted(names), "_")


@given(NAMES, LIKELY_TO_MEET, SEPARATORS)
def test_a_new_tool_never_gets_a_wire_name_that_another_one_had(
    names: set[str], new: str, separator: str
) -> None:
    before = build_wire_names(names - {new}, separator)
    after = build_wire_names({*names, new}, separator)
    assert after.encode(new) not in {before.encode(name) for name in names - {new, TOOL_SEARCH}}


@pytest.mark.parametrize(
    ("name", "separator", "wire"),
    [
        ("calendar.respondToEvent", "__", "calendar__respondToEvent"),
        ("admin.tools.list", "-_-", "admin-_-tools-_-list"),
        ("a__b.c", "__", "a__b__c"),
        (TOOL_SEARCH, "__", TOOL_SEARCH),
    ],
)
def test_a_name_that_meets_no_other_keeps_its_plain_form(
    name: str, separator: str, wire: str
) -> None:
    assert build_wire_names([name, "other.tool"], separator).encode(name) == wire


@pytest.mark.requirement("ASK-12a")
@pytest.mark.parametrize(
    ("name", "separator"),
    [("tool.search", "_"), ("Tool_Search", "__"), ("TOOL.SEARCH", "_")],
)
def test_no_other_tool_gets_the_wire_name_of_tool_search(name: str, separator: str) -> None:
    wire = build_wire_names([name], separator)
    assert wire.encode(name).casefold() != TOOL_SEARCH
    assert wire.decode(TOOL_SEARCH) == TOOL_SEARCH


@pytest.mark.requirement("TS-10")
@pytest.mark.parametrize(
    ("name", "separator", "meets"),
    [
        ("tool_search", "__", True),
        ("Tool_Search", "__", True),
        ("tool.search", "_", True),
        ("tool.search", "__", False),
        ("tools.search", "_", False),
    ],
)
def test_a_tool_that_would_be_taken_for_the_loader_is_told(
    name: str, separator: str, meets: bool
) -> None:
    assert meets_tool_search(name, separator) is meets


@given(st.text(max_size=200))
def test_a_tool_that_has_gone_still_gets_a_legal_wire_name(name: str) -> None:
    assert WIRE.fullmatch(build_wire_names(["a.b"], "__").encode(name))


def test_a_wire_name_that_no_tool_has_is_left_alone() -> None:
    assert build_wire_names(["a.b"], "__").decode("invented") == "invented"
