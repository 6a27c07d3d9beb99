"""The section [files]: names of roots begin paths, and every root says where it is."""

import pytest

from tests.config.conftest import Reader


@pytest.mark.parametrize("name", ["docs", "Team_2-a", "资料", "x" * 64])
def test_a_root_may_have_any_short_name_of_letters_and_digits(read: Reader, name: str) -> None:
    settings = read(f'[files.roots."{name}"]\npath = "data"\n').settings
    root = settings.files.roots[name]
    assert (root.path, root.writable, root.per_user) == (read.folder / "data", False, False)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "-a", "a.b", "cafe\u0301", "x" * 65])
def test_a_name_that_cannot_begin_a_path_is_refused(read: Reader, name: str) -> None:
    (problem,) = read.problems(f'[files.roots."{name}"]\npath = "data"\n')
    assert problem.startswith("config.toml:1: files.roots")
    assert "cannot begin a path: use up to 64 letters, digits, _ and -" in problem


def test_a_root_has_to_say_where_it_is(read: Reader) -> None:
    assert read.problems("[files.roots.docs]\nwritable = true\n") == [
        "config.toml:1: files.roots.docs.path: is missing: name the folder"
    ]


@pytest.mark.requirement("CFG-1")
def test_every_name_that_cannot_begin_a_path_is_told_at_its_line(read: Reader) -> None:
    text = "".join(f'[files.roots."{name}"]\npath = "data"\n' for name in ("a b", "ok", "c/d"))
    told = "cannot begin a path: use up to 64 letters, digits, _ and -"
    assert read.problems(text) == [
        f'config.toml:1: files.roots."a b": {told}',
        f'config.toml:5: files.roots."c/d": {told}',
    ]
