"""The state directory is found in a configuration that no daemon would start with."""

from pathlib import Path

import pytest

from session_runtime.config.load import find_state_dir
from session_runtime.errors import ConfigError

VARIABLE = "SESSION_RUNTIME__RUNTIME__STATE_DIR"


@pytest.mark.parametrize(
    ("text", "env", "folder"),
    [
        (None, {}, ".session-runtime"),
        ("[ask]\nmax_steps = 0\n", {}, ".session-runtime"),
        ('[runtime]\nstate_dir = "state"\nnme = "x"\n[models.m]\n', {}, "state"),
        ('[runtime]\nstate_dir = "/var/lib/state"\n', {}, "/var/lib/state"),
        ('[runtime]\nstate_dir = "state"\n', {VARIABLE: "other"}, "other"),
        ("[runtime]\nstate_dir = 5\n", {}, ".session-runtime"),
        ('runtime = "state"\n', {}, ".session-runtime"),
        ('[runtime]\nstate_dir = ""\n', {"SESSION_RUNTIME__MODELS": "{"}, ".session-runtime"),
    ],
)
def test_it_is_found_whatever_else_is_wrong(
    tmp_path: Path, text: str | None, env: dict[str, str], folder: str
) -> None:
    path = tmp_path / "config.toml"
    if text is not None:
        path.write_text(text)
    assert find_state_dir(path, named=text is not None, env=env) == tmp_path / folder


def test_explicit_values_and_dotenv_count(tmp_path: Path) -> None:
    dotenv = tmp_path / ".env"
    dotenv.write_text(f"{VARIABLE}=from-dotenv\n")
    path = tmp_path / "config.toml"
    assert find_state_dir(path, named=False, env={}, dotenv=dotenv) == tmp_path / "from-dotenv"
    explicit = {"runtime.state_dir": "given"}
    found = find_state_dir(path, named=False, env={}, explicit=explicit, dotenv=dotenv)
    assert found == tmp_path / "given"


def test_a_file_that_is_no_toml_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[runtime")
    with pytest.raises(ConfigError, match="not valid TOML"):
        find_state_dir(path, named=False, env={})
    with pytest.raises(ConfigError, match="cannot be read"):
        find_state_dir(tmp_path / "absent.toml", named=True, env={})
