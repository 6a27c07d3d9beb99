"""Where the state is, whatever else is wrong with the configuration."""

from pathlib import Path

import pytest

from session_runtime.app.reader import ConfigReader
from session_runtime.errors import ConfigError

pytestmark = pytest.mark.requirement("NET-4")


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ('[runtime]\nstate_dir = "kept"\n', "kept"),
        ('[runtime]\nstate_dir = "kept"\n[ask]\nmax_steps = 0\n', "kept"),
        ('[runtime]\nname = 3\nstate_dir = "kept"\n', "kept"),
        ('[runtime]\nstate_dir = "kept"\n[ask\n', "kept"),
        ('[ask\n\n[ runtime ] # here\n  state_dir="kept" # there\n', "kept"),
        ('x = \n[other]\nstate_dir = "other"\n[runtime]\nname = "n"\n', ".session-runtime"),
        ("[ask\n", ".session-runtime"),
        ("", ".session-runtime"),
    ],
)
def test_it_is_found_in_a_file_that_cannot_be_used(tmp_path: Path, text: str, folder: str) -> None:
    (tmp_path / "config.toml").write_text(text, "utf-8")
    assert ConfigReader(tmp_path / "config.toml", env={}).state_dir() == tmp_path / folder


def test_it_is_found_in_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b'\xff\n[runtime]\nstate_dir = "kept"\n')
    assert ConfigReader(tmp_path / "config.toml", env={}).state_dir() == tmp_path / "kept"


def test_a_variable_wins_over_a_broken_file_too(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[runtime]\nstate_dir = "kept"\n[ask\n', "utf-8")
    env = {"SESSION_RUNTIME__RUNTIME__STATE_DIR": "/elsewhere"}
    assert ConfigReader(tmp_path / "config.toml", env=env).state_dir() == Path("/elsewhere")


def test_it_is_beside_a_file_that_is_not_there_any_more(tmp_path: Path) -> None:
    assert ConfigReader(tmp_path / "gone.toml", env={}).state_dir() == tmp_path / ".session-runtime"


def test_a_broken_file_of_variables_does_not_keep_it_hidden(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[runtime]\nstate_dir = "kept"\n', "utf-8")
    (tmp_path / ".env").write_text("BROKEN LINE\n", "utf-8")
    read = ConfigReader(tmp_path / "config.toml", env={}, env_file=tmp_path / ".env")
    assert read.state_dir() == tmp_path / "kept"


def test_a_line_that_gives_it_wrongly_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[runtime]\nstate_dir = kept\n[ask\n", "utf-8")
    with pytest.raises(ConfigError, match="not valid TOML"):
        ConfigReader(tmp_path / "config.toml", env={}).state_dir()
