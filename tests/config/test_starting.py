"""The configuration file to start with."""

import re
from pathlib import Path

import pytest

from session_runtime.config.load import load
from session_runtime.config.shape import OLD_NOTICES, leaves
from session_runtime.config.snapshot import values_of
from session_runtime.config.starting import starting_config
from tests.config.conftest import Reader

WITHOUT_DEFAULT = {("trace", "path")}
EXAMPLES = {"models.main", "access.rules.guests", "features.beta", "files.roots.shared"}


@pytest.mark.requirement("CFG-6")
def test_it_says_nothing_until_it_is_edited(read: Reader) -> None:
    started = read(starting_config())
    assert started.settings == read().settings
    assert started.warnings == ()


@pytest.mark.requirement("CFG-6")
def test_every_key_is_there_with_its_default_or_as_not_set() -> None:
    text = starting_config()
    for path, leaf in leaves(()):
        if path != OLD_NOTICES:
            section = text.split(f"\n[{'.'.join(path[:-1])}]\n")[1].partition("\n\n")[0]
            unset = leaf.default is None or path in WITHOUT_DEFAULT
            line = rf"^# {path[-1]}, not set: " if unset else rf"^#{path[-1]} = \S"
            assert re.search(line, section, re.MULTILINE), path


@pytest.mark.requirement("CFG-6")
def test_what_is_commented_out_are_the_defaults_and_good_examples(
    read: Reader, tmp_path: Path
) -> None:
    text = re.sub(r"^#(?=[\[a-z])", "", starting_config(), flags=re.MULTILINE)
    snapshot = read(text, env={"MAIN_API_KEY": "k"})
    defaults = values_of(load(tmp_path / "absent", named=False, env={}).settings)
    differing = {
        ".".join(path)
        for path, value in values_of(snapshot.settings).items()
        if defaults.get(path) != value
    }
    assert {key for key in differing if not key.startswith(tuple(EXAMPLES))} == set()
    assert snapshot.warnings == ()
    for example in EXAMPLES:
        assert any(key.startswith(example) for key in differing)


def test_lines_are_short_enough_to_read() -> None:
    lines = starting_config().splitlines()
    assert [line for line in lines if line.startswith("# ") and len(line) > 100] == []
