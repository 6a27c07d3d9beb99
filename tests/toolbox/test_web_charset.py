"""Texts are decoded as browsers do, and by encodings of texts alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.toolbox.web.charset import decoded

META = '<meta http-equiv="Content-Type" content="text/html; charset={}">'


@pytest.mark.parametrize(
    ("content", "declared", "text"),
    [
        ("grüße".encode(), None, "grüße"),
        ("grüße".encode("latin-1"), "ISO-8859-1", "grüße"),
        ("“quoted”".encode("cp1252"), "latin1", "“quoted”"),
        ("中文".encode("gb18030"), "GB2312", "中文"),
        ("中文".encode("big5"), "big5", "中文"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        ("日本".encode("utf-16"), None, "日本"),
        (b"\xef\xbb\xbf" + "ü".encode(), "latin-1", "ü"),
        ("日本".encode("utf-16-be"), "utf-16be", "日本"),
        ((META.format("gbk") + "中文").encode("gbk"), None, META.format("gbk") + "中文"),
        ((META.format("gbk") + "ü").encode(), "utf-8", META.format("gbk") + "ü"),
        ((META.format("utf-16") + "ü").encode(), None, META.format("utf-16") + "ü"),
        ('<?xml version="1.0" encoding="koi8-r"?>да'.encode("koi8-r"), None,
         '<?xml version="1.0" encoding="koi8-r"?>да'),
        (b"caf\xe9", None, "caf\ufffd"),
        (b"caf\xe9 ", "no-such-encoding", "caf\ufffd "),
    ],
)  # fmt: skip
def test_the_encoding_is_found(content: bytes, declared: str | None, text: str) -> None:
    assert decoded(content, declared) == text


@pytest.mark.parametrize(
    "declared",
    ["zip", "base64", "idna", "punycode", "unicode_escape", "utf-7", "rot13", "a\0b", "mbcs"],
)
def test_what_is_no_encoding_of_a_text_is_not_used(declared: str) -> None:
    assert decoded(b"a+AGI-\\u0063", declared) == "a+AGI-\\u0063"


@given(st.binary(max_size=200), st.none() | st.text("abcdefgiktuwz0123456789-_", max_size=12))
def test_any_bytes_give_a_text(content: bytes, declared: str | None) -> None:
    decoded(content, declared).encode("utf-8")
