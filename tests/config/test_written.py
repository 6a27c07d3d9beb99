"""What a file says as plain data: secrets masked and put back, and what differs."""

from typing import Any

import pytest
from hypothesis import given, settings

from session_runtime.config.written import (
    Difference,
    alike,
    differences,
    masked,
    same,
    with_secrets,
)
from tests.config.layouts import SETTINGS, tree

SECRET = "sk-5tr3ng-geheim"
FILE: dict[str, Any] = {
    "models": {
        "main": {
            "model": "m",
            "base_url": f"https://h/v1?key={SECRET}&v=2",
            "api_key": SECRET,
            "headers": {"X-Team": SECRET, "X-Key": "env:X_TOKEN"},
            "extra_body": {
                "user_token": SECRET,
                "max_tokens": 5,
                "a": {"auth": [SECRET], "b": "c"},
            },
        },
        "other": {"api_key": "file:/run/secrets/k"},
        "none": {"api_key": ""},
    },
    "handlers": {
        "entries": {"t": {"parameters": {"properties": {"author": {"type": "string"}}}}},
    },
}
MASKED: dict[str, Any] = {
    "models": {
        "main": {
            "model": "m",
            "base_url": "https://h/v1?key=***&v=2",
            "api_key": "***",
            "headers": {"X-Team": "***", "X-Key": "env:X_TOKEN"},
            "extra_body": {"user_token": "***", "max_tokens": 5, "a": {"auth": ["***"], "b": "c"}},
        },
        "other": {"api_key": "file:/run/secrets/k"},
        "none": {"api_key": ""},
    },
    "handlers": FILE["handlers"],
}


@pytest.mark.requirement("CFG-4")
def test_secrets_are_masked_and_references_are_not() -> None:
    assert masked(FILE) == MASKED


@pytest.mark.requirement("CFG-4")
def test_a_secret_under_a_misspelt_key_is_masked_too() -> None:
    assert masked({"modles": {"m": {"apikey": SECRET}}, "api": SECRET, "password": SECRET}) == {
        "modles": {"m": {"apikey": "***"}},
        "api": SECRET,
        "password": "***",
    }


@pytest.mark.requirement("CFG-4b")
def test_masks_are_filled_with_the_secrets_of_now() -> None:
    assert with_secrets(MASKED, FILE) == (FILE, ())
    rotated = {"models": {"main": {**FILE["models"]["main"], "api_key": "env:NEW_API_KEY"}}}
    filled, missing = with_secrets(MASKED, rotated)
    assert filled["models"]["main"] == rotated["models"]["main"]  # type: ignore[index]
    assert missing == ()


@pytest.mark.requirement("CFG-4b")
def test_masks_without_a_secret_of_now_are_told() -> None:
    now = {"models": {"main": {"base_url": "https://other/v1?key=k", "api_key": ["x"]}}}
    assert with_secrets(MASKED, now) == (
        MASKED,
        (
            ("models", "main", "base_url"),
            ("models", "main", "api_key"),
            ("models", "main", "headers", "X-Team"),
            ("models", "main", "extra_body", "user_token"),
            ("models", "main", "extra_body", "a", "auth"),
        ),
    )


def services(*each: dict[str, str]) -> dict[str, Any]:
    return {"models": {"m": {"extra_body": {"services": list(each)}}}}


@pytest.mark.requirement("CFG-4b")
def test_a_secret_in_a_list_is_put_back_only_beside_what_it_belongs_to() -> None:
    one, other = {"host": "a", "token": "A"}, {"host": "b", "token": "B"}
    kept = masked(services(one, other))
    key = ("models", "m", "extra_body", "services", "token")
    assert with_secrets(kept, services(one, other)) == (services(one, other), ())
    assert with_secrets(kept, services(other, one)) == (kept, (key,))
    assert with_secrets(kept, services(one, {**other, "host": "c"})) == (
        services(one, {**other, "token": "***"}),
        (key,),
    )


@settings(deadline=None)
@given(SETTINGS)
def test_masking_twice_is_masking_once_and_every_mask_can_be_filled(
    settings: dict[tuple[str, ...], Any],
) -> None:
    data = tree(settings)
    once = masked(data)
    assert same(masked(once), once)
    filled, missing = with_secrets(once, data)
    assert (same(filled, data), missing) == (True, ())


def test_differences_are_listed_by_key_with_when_they_act() -> None:
    old = {"ask": {"max_steps": 1}, "http": {"port": 1}, "log": {}, "features": {"f": True}}
    new = {"http": {"port": 2}, "ask": {"max_steps": 1}, "features": {"g": True}, "gone": 1}
    assert differences(old, new) == (
        Difference("http.port", 1, 2, "restart"),
        Difference("features.g", None, True, "next ask"),
        Difference("gone", None, 1, None),
        Difference("features.f", True, None, "next ask"),
    )


def test_another_secret_is_a_difference_that_shows_none() -> None:
    old, new = ({"models": {"m": {"api_key": key}}} for key in ("one", "other"))
    assert differences(old, new) == (Difference("models.m.api_key", "***", "***", "next ask"),)


def test_another_order_of_profiles_is_a_difference() -> None:
    old = {"models": {"a": {"model": "x"}, "b": {"model": "y"}}}
    new = {"models": {"b": {"model": "y"}, "c": {"model": "z"}, "a": {"model": "x"}}}
    assert differences(old, new) == (
        Difference("models.c.model", None, "z", "next ask"),
        Difference("models", ["a", "b"], ["b", "c", "a"], None),
    )
    assert not alike(old, {"models": dict(reversed(old["models"].items()))})


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (float("nan"), float("nan"), True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ([], {}, False),
    ],
)
def test_values_are_the_same_if_they_are_written_alike(
    one: object, other: object, expected: bool
) -> None:
    assert same(one, other) is expected
