"""Which paths are taken, what is said about the others, and that users' folders are told apart."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import ToolError
from session_runtime.toolbox.files.names import TEMPORARY, name_fault, parts_of, user_folder

SAFE = set("abcdefghijklmnopqrstuvwxyz0123456789_-%~")


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("", ()),
        ("docs", ("docs",)),
        ("docs/a.txt", ("docs", "a.txt")),
        ("docs/.hidden/two words/...", ("docs", ".hidden", "two words", "...")),
        ("资料/报告。md", ("资料", "报告。md")),
        ("docs/%2e%2e/a", ("docs", "%2e%2e", "a")),
    ],
)
def test_a_path_is_split_at_its_slashes_and_nothing_in_it_is_decoded(
    path: str, parts: tuple[str, ...]
) -> None:
    assert parts_of(path) == parts


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "paths begin with the name of a root"),
        ("~/a", "paths begin with the name of a root"),
        ("docs/../a", ".. is not followed"),
        ("..", ".. is not followed"),
        ("./docs/a", ". is not followed"),
        ("docs//a", "it has an empty part"),
        ("docs/a/", "it has an empty part"),
        ("docs\\a", "parts are separated by /"),
        ("docs/a\0.txt", "a control character"),
        ("docs/a\nb", "a control character"),
        ("docs/a\x9bb", "a control character"),
        ("docs/a\u2028b", "a control character"),
        ("docs/\ud800", "half a character"),
        ("docs/a ", "begins or ends with a blank"),
        ("docs/\u3000a", "begins or ends with a blank"),
        ("docs/cafe\u0301", "composed form (NFC): 'café'"),
        ("docs/" + "é" * 128, "longer than 255 bytes"),
        ("/".join(["docs"] * 33), "more than 32 parts"),
        (f"docs/{TEMPORARY}1", "files that are being written"),
    ],
)
def test_what_is_no_path_is_refused_with_the_reason(path: str, why: str) -> None:
    with pytest.raises(ToolError) as caught:
        parts_of(path)
    assert why in str(caught.value)
    assert caught.value.code == "files.bad_path"


def split(path: str) -> tuple[str, ...] | str:
    """The parts of a path, or what is said instead."""
    try:
        return parts_of(path)
    except ToolError as error:
        return str(error)


@given(st.text())
def test_a_path_is_split_into_plain_names_or_refused_in_printable_words(path: str) -> None:
    match split(path):
        case str() as refusal:
            assert len(refusal) < 1000
            assert refusal.isprintable()
        case parts:
            assert "/".join(parts) == path
            assert not {"", ".", ".."} & set(parts)
            assert not {"/", "\0", "\\"} & set("".join(parts))


@pytest.mark.parametrize(
    ("user", "folder"),
    [
        ("ann", "ann"),
        ("Ann", "%41nn"),
        ("", "%"),
        (".", "%2e"),
        ("..", "%2e%2e"),
        ("a/b", "a%2fb"),
        ("a\0b", "a%00b"),
        ("%2e", "%252e"),
        ("mail@example.org", "mail%40example%2eorg"),
    ],
)
def test_a_user_folder_is_one_readable_name(user: str, folder: str) -> None:
    assert user_folder(user) == folder


@pytest.mark.requirement("SEC-1")
@given(st.text(), st.text())
def test_two_users_never_share_a_folder(one: str, other: str) -> None:
    assert (user_folder(one) == user_folder(other)) == (one == other)


@pytest.mark.requirement("SEC-1")
@given(st.text() | st.text("./\\~\0", max_size=4) | st.text(min_size=200))
def test_every_user_folder_is_a_short_plain_name(user: str) -> None:
    folder = user_folder(user)
    assert 1 <= len(folder) <= 100
    assert set(folder) <= SAFE
    assert name_fault(folder) is None


def test_users_who_look_alike_have_folders_of_their_own() -> None:
    alike = ["café", unicodedata.normalize("NFD", "café"), "cafe", "cаfé", "CAFÉ", "café "]
    long = ["x" * 300, "x" * 301, "x" * 299 + "y"]
    folders = {user_folder(user) for user in (*alike, *long, "", "%", " ", "\ud800")}
    assert len(folders) == len(alike) + len(long) + 4
