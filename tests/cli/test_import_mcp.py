"""Taking over the servers of another program."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from session_runtime.cli import main
from tests.control_daemon import control_daemon

SERVERS = {
    "mcpServers": {"shop": {"command": "shop-server", "env": {"SHOP_TOKEN": "${SHOP_TOKEN}"}}}
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_TOKEN", "s")
    (tmp_path / "config.toml").write_text("# mine\n[ask]\nmax_steps = 3\n", "utf-8")
    (tmp_path / "mcp.json").write_text(json.dumps(SERVERS), "utf-8")
    return tmp_path


def test_servers_join_the_file_and_what_was_there_stays(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tools", "import-mcp", "mcp.json"]) == 0
    text = (files / "config.toml").read_text("utf-8")
    assert text.startswith("# mine\n[ask]\nmax_steps = 3\n")
    assert 'command = "shop-server"' in text
    assert '"env:SHOP_TOKEN"' in text
    assert "mcp.servers.shop.command: not set" in capsys.readouterr().out


def test_a_server_that_is_there_is_replaced_only_if_that_is_said(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tools", "import-mcp", "mcp.json"]) == 0
    before = (files / "config.toml").read_bytes()
    assert main(["tools", "import-mcp", "mcp.json"]) == 64
    assert "has shop already: --replace takes the new ones" in capsys.readouterr().err
    assert (files / "config.toml").read_bytes() == before
    assert main(["tools", "import-mcp", "mcp.json", "--replace"]) == 0


def test_a_secret_from_a_source_that_is_not_allowed_changes_nothing(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"command": "x", "env": {"A": "${HOME}"}}
    (files / "mcp.json").write_text(json.dumps({"mcpServers": {"a": entry}}), "utf-8")
    before = (files / "config.toml").read_bytes()
    assert main(["tools", "import-mcp", "mcp.json"]) == 78
    assert "env:HOME is not allowed by runtime.secret_sources" in capsys.readouterr().err
    assert (files / "config.toml").read_bytes() == before


@pytest.mark.parametrize("content", ["{", "", '{"a": 1, "a": 2}', "[]", "\udcff"])
def test_a_file_that_is_no_such_json_is_named(
    files: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (files / "mcp.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert main(["tools", "import-mcp", "mcp.json"]) == 64
    assert capsys.readouterr().err.startswith("error: mcp.json: ")


@pytest.mark.parametrize("serving", [False, True])
def test_a_secret_that_is_written_out_is_warned_about(
    files: Path, capsys: pytest.CaptureFixture[str], serving: bool
) -> None:
    env = {"SHOP_TOKEN": "abcdefg", "SHOP_PAT": "ghp_0123456789abcdefghij", "MODE": "fast"}
    entry = {"command": "x", "args": ["--api-key", "abcdefg"], "env": env}
    (files / "mcp.json").write_text(json.dumps({"mcpServers": {"a": entry}}), "utf-8")
    text = (files / "config.toml").read_text("utf-8")
    with control_daemon(files, text) if serving else nullcontext():
        assert main(["tools", "import-mcp", "mcp.json"]) == 0
    told = capsys.readouterr().err
    for name in ("env.SHOP_TOKEN", "env.SHOP_PAT", "args"):
        assert told.count(f"mcp.servers.a.{name}: the secret itself is in the file") == 1
    assert "MODE" not in told
    assert "abcdefg" not in told
