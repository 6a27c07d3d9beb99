"""Who is told of a deprecated tool learns what to use instead, if that may be known (RTE-12)."""

import pytest

from session_runtime.registry.deprecation import (
    described,
    shown,
    unusable_replacements,
    warning,
)
from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import Deprecated
from tests.registry.tools import spec


@pytest.mark.requirement("RTE-12")
def test_the_replacement_is_named_only_to_a_model_that_may_know_of_it() -> None:
    old, names = (
        spec("c", deprecated=Deprecated("slow", "a.b")),
        build_wire_names(["a.b", "c"], "__"),
    )
    seen = {
        "everything": names,
        "c alone": names.only({"c"}, frozenset()),
        "without a.b": names.only({"a.b", "c"}, frozenset({"a.b"})),
    }
    assert {who: described(old, shown(old, known).instead) for who, known in seen.items()} == {
        "everything": "Does c.\nDeprecated: use a__b instead.",
        "c alone": "Does c.\nDeprecated.",
        "without a.b": "Does c.\nDeprecated.",
    }
    assert described(spec("a.b"), None) == "Does a.b."


@pytest.mark.requirement("RTE-12")
@pytest.mark.parametrize(
    ("deprecated", "instead", "told"),
    [
        (None, None, ""),
        (Deprecated(), None, "Note: t is deprecated."),
        (Deprecated("It is\nslow."), None, "Note: t is deprecated (It is slow)."),
        (Deprecated("slow", "u"), "u", "Note: t is deprecated (slow): use u instead."),
        (Deprecated("x" * 1000), None, f"Note: t is deprecated ({'x' * 200})."),
    ],
)
def test_a_call_is_answered_with_a_short_warning(
    deprecated: Deprecated | None, instead: str | None, told: str
) -> None:
    assert warning(spec("t", deprecated=deprecated), instead) == told


@pytest.mark.requirement("RTE-12")
def test_replacements_that_are_no_help_are_told() -> None:
    tools = [
        spec("a.good", deprecated=Deprecated("", "b.new")),
        spec("a.lost", deprecated=Deprecated("", "b.nev")),
        spec("a.self", deprecated=Deprecated("", "a.self")),
        spec("a.late", deprecated=Deprecated("", "a.lost")),
        spec("a.plain", deprecated=Deprecated("old")),
        spec("b.new"),
    ]
    assert list(unusable_replacements(tools)) == [
        "tool 'a.lost' is deprecated, and its replacement 'b.nev' is no tool; did you mean 'b.new'?",
        "tool 'a.self' is deprecated, and its replacement 'a.self' is the tool itself",
        "tool 'a.late' is deprecated, and its replacement 'a.lost' is deprecated too",
    ]


def test_of_many_the_first_are_told() -> None:
    tools = [spec(f"t{n}", deprecated=Deprecated("", "gone")) for n in range(25)]
    told = list(unusable_replacements(tools))
    assert (len(told), told[-1]) == (
        21,
        "5 more deprecated tools have a replacement that is no help",
    )
