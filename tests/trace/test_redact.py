import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.trace.redact import (
    CUT,
    MASK,
    MAX_TEXT_CHARS,
    MAX_TOTAL_CHARS,
    MAX_VALUES,
    is_secret_name,
    mask_secrets,
    redact,
    redact_text,
)

SHAPED = [
    "sk-proj-4fGh7Jk2Lm9Np3Qr6St8Uv1Wx",
    "sk-ant-api03-abcDEF123456-xyz",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "github_pat_11ABCDEFG0123456789_abcdef",
    "glpat-abcdefghij0123456789",
    "xoxb-123456789012-abcdefABCDEF",
    "AKIAIOSFODNN7EXAMPLE",
    "LTAI5tAbCdEfGhIjKlMnOpQr",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "hf_abcdefghijklmnopqrstuvwxyz",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0",
]
PLAIN = "correct-horse-battery"
SECRET_NAMES = [
    "password",
    "DB_PASSWORD",
    "apiKey",
    "x-api-key",
    "Authorization",
    "Set-Cookie",
    "access_token",
    "refreshToken",
    "client_secret",
    "smtp_pass",
    "privateKey",
    "credentials",
    "密码",
]
NAMES = st.sampled_from(["q", "city", "note", "items", "max_tokens", "姓名"]) | st.text(
    st.characters(categories=["Ll", "Lo"]), min_size=1, max_size=6
).filter(lambda name: not is_secret_name(name))
PLAIN_NAMES = NAMES.filter(lambda name: not is_secret_name(name))
LEAVES = st.none() | st.booleans() | st.integers(0, 99) | st.text("ab 天,:=\"'", max_size=8)


def as_value_of_secret_name(draw: st.DrawFn) -> Any:
    name = draw(st.sampled_from(SECRET_NAMES))
    value = draw(st.sampled_from([PLAIN, [PLAIN], {"value": PLAIN}, {"a": {"b": [1, PLAIN]}}]))
    return {name: value}


def as_header_pair(draw: st.DrawFn) -> Any:
    name = draw(st.sampled_from(SECRET_NAMES))
    return draw(st.sampled_from([[name, PLAIN], {"name": name, "value": PLAIN}]))


def inside_text(draw: st.DrawFn) -> Any:
    secret = draw(st.sampled_from(SHAPED))
    before, after = draw(
        st.sampled_from([("", ""), ("use ", " now"), ("密钥是", "，"), ("x=", "&y=1")])
    )
    return before + secret + after


def named_in_text(draw: st.DrawFn) -> Any:
    name = draw(st.sampled_from(SECRET_NAMES[:-1]))
    form = draw(
        st.sampled_from(
            [
                "{name}={secret}",
                "see {name}: {secret}",
                'curl -H "{name}: {secret}"',
                "https://h/p?a=1&{name}={secret}&b=2",
                "--{name} {secret} -v",
                'result: {{"{name}": "{secret}"}} end',
                'result: {{"{name}": ["{secret}"]}} end',
                'nested: {{\\"{name}\\": \\"{secret} x\\"}}',
            ]
        )
    )
    return form.format(name=name, secret=PLAIN)


@st.composite
def planted(draw: st.DrawFn) -> Any:
    """Data of any shape with one secret somewhere in it."""
    kinds = [as_value_of_secret_name, as_header_pair, inside_text, named_in_text]
    data = draw(st.sampled_from(kinds))(draw)
    for _ in range(draw(st.integers(0, 5))):
        match draw(st.sampled_from(["object", "list", "json"])):
            case "object":
                data = {**draw(st.dictionaries(NAMES, LEAVES, max_size=3)), draw(NAMES): data}
            case "list":
                data = [
                    *draw(st.lists(LEAVES, max_size=3)),
                    data,
                    *draw(st.lists(LEAVES, max_size=2)),
                ]
            case "json":
                data = json.dumps(data, ensure_ascii=draw(st.booleans()))
    return data


@given(planted())
@pytest.mark.requirement("CFG-4a")
@pytest.mark.requirement("OPS-1a")
def test_a_secret_planted_anywhere_does_not_survive(data: Any) -> None:
    text = json.dumps(redact(data), ensure_ascii=False)
    assert [secret for secret in (*SHAPED, PLAIN) if secret in text] == []


SPEECH = [
    "Bearer",
    "BASIC",
    "bas\u0130c",
    "dige\u017ft",
    "to\u212aen",
    "token is",
    "bot",
    "passcode was",
]
NAMED = ["API key is", "密码", "--pin", "pin", "access key =>", "http://u:", "sk", ""]
ALL_SIGNS = "ж bot. :// -- \n"


def test_what_is_passed_over_holds_nothing_that_would_be_masked() -> None:
    before, between = ["", "x", "x ", "\n"], ["", " ", "\n", "=", ": ", "-"]
    values = [*SHAPED, "s3cr3t==", "0aB9xyz77@h", "on"]
    texts = map("".join, product(before, [*SPEECH, *NAMED], between, values))
    assert [
        text for text in texts if mask_secrets(ALL_SIGNS + text) != ALL_SIGNS + mask_secrets(text)
    ] == []


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(PLAIN_NAMES, inner)))
def test_data_without_secrets_is_kept(data: Any) -> None:
    kept = redact(data)
    assert kept == data


@pytest.mark.parametrize(
    "name",
    [*SECRET_NAMES, "token", "tokens", "bot_token", "auth", "X-Amz-Signature", "sig", "PHPSESSID"],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["key", "author", "secretary", "tokenizer", "page_token", "keyword", "compass", "design"],
)
def test_other_names_are_left_alone(name: str) -> None:
    assert not is_secret_name(name)


def test_numbers_of_tokens_are_no_secrets() -> None:
    data = {"max_tokens": 100, "total_tokens": 5, "maxTokens": "7", "tokens": 3, "token": "abc"}
    assert redact(data) == {**data, "token": MASK}
    assert redact_text("max_tokens=100 total_tokens: 5 token=5") == (
        "max_tokens=100 total_tokens: 5 token=***"
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Basic dXNlcjpwYXNz\nnext line", "Authorization: ***\nnext line"),
        ("Cookie: a=b; c=d", "Cookie: ***"),
        (r"'failed\nAuthorization: Bearer abc123'", r"'failed\nAuthorization: ***'"),
        (r"'failed\nAuthorization: missing'", r"'failed\nAuthorization: missing'"),
        (
            r"'x\r\nProxy-Authorization: Token abc\nnext: y'",
            r"'x\r\nProxy-Authorization: ***\nnext: y'",
        ),
        (r"'\tCookie: a=b; c=d'", r"'\tCookie: ***'"),
        (
            r'{"m": "x\nAuthorization: Basic abc", "n": 1}',
            r'{"m": "x\nAuthorization: ***", "n": 1}',
        ),
        (r'"\"x\\nSet-Cookie: a=b; c\""', r'"\"x\\nSet-Cookie: ***\""'),
        ("https://me:pw@host/path", "https://me:***@host/path"),
        ("send Bearer abc123def456 along", "send Bearer *** along"),
        ("我的密码是hunter2，别告诉别人", "我的密码是***，别告诉别人"),
        ("my password is hunter2 and that is it", "my password is *** and that is it"),
        ("https://h/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0/send", "https://h/***/send"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----x", "***x"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "***"),
        ('{"a": 1, "password": "p\\"q"}', '{"a": 1, "password": "***"}'),
    ],
)
def test_only_the_secret_is_masked(text: str, kept: str) -> None:
    assert redact_text(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "task-1234567890 is done",
        "the bearer securities are Basic information",
        '{"city": "Berlin", "n": 1}',
        "https://host/path?q=1:2",
        "2024-05-06 10:20:30",
    ],
)
def test_ordinary_text_is_kept(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "SHOP_TOKEN is missing",
        "SHOP_TOKEN is missing.",
        "SHOP_TOKEN: missing, set it",
        "the API key is not set",
        "password was wrong",
        "token=null",
        "api_key: None",
        "--token required",
        "Authorization: missing",
        "密码 missing",
    ],
)
def test_words_about_a_secret_are_kept(text: str) -> None:
    assert redact_text(text) == text


@given(st.sampled_from(SECRET_NAMES[:-1]), st.sampled_from(["=", ": ", " is ", " was "]))
def test_what_only_begins_like_such_a_word_is_masked(name: str, between: str) -> None:
    for secret in ("missing1", "null-x", "NoneOfYours", "not_a_word", "expired,foo"):
        named = name if between in ("=", ": ") else "the token"
        assert secret not in redact_text(f"{named}{between}{secret}")


def test_under_a_name_of_its_own_such_a_word_is_a_secret_too() -> None:
    assert redact({"password": "missing"}) == {"password": MASK}
    assert redact_text('{"password": "missing"}') == '{"password": "***"}'


def test_nothing_true_false_and_empty_are_no_secrets() -> None:
    data = {"password": None, "has_token": True, "secret": ""}
    assert redact(data) == data


def test_long_text_is_cut_without_splitting_a_secret() -> None:
    for secret in SHAPED:
        for shift in range(0, 40, 7):
            kept = redact_text("a " * ((MAX_TEXT_CHARS - shift) // 2) + secret + " b" * 5_000)
            assert kept.endswith(CUT)
            assert len(kept) <= MAX_TEXT_CHARS + len(CUT)
            assert secret[:12] not in kept


def test_large_data_is_cut() -> None:
    wide: Any = redact([f"item {n}" for n in range(MAX_VALUES * 3)])
    long = json.dumps(redact(["x" * MAX_TEXT_CHARS] * 100))
    keys: Any = redact({f"k{n}": n for n in range(MAX_VALUES * 3)})
    assert len(wide) <= MAX_VALUES + 1
    assert wide[-1] == CUT
    assert len(long) < MAX_TOTAL_CHARS * 2
    assert len(keys) <= MAX_VALUES + 1


def test_deep_data_is_cut() -> None:
    deep: Any = PLAIN
    for _ in range(5_000):
        deep = [deep]
    assert CUT in json.dumps(redact(deep))
    assert redact_text("[" * 100_000).endswith(CUT)
    assert redact_text("[" * 3_000) == "[" * 3_000


def test_what_is_not_json_is_named_by_its_type() -> None:
    assert redact({"a": b"\x00", "b": {"x"}}) == {"a": "[bytes]", "b": ["x"]}


@given(st.text(max_size=200))
def test_any_text_is_accepted(text: str) -> None:
    redact_text(text)
