"""Without the SDK nothing else is amiss, and whoever wants this door is told what to install."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from session_runtime.cli import main
from session_runtime.errors import ConfigError
from tests.support import opened
from tests.transports.mcp.served import ON, RUNTIME, serving, tools

PIP = "pip install '.[mcp]' in the source tree of session-runtime"


@pytest.fixture
def without_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python in which the SDK is not found."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "mcp" else find(name, *more),
    )


@pytest.mark.usefixtures("without_sdk")
async def test_the_key_is_refused_and_the_message_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        async with opened(tmp_path, ON):
            pass
    (problem,) = caught.value.problems
    assert problem.key == "http.mcp"
    assert PIP in problem.message


@pytest.mark.usefixtures("without_sdk")
def test_the_command_names_the_extra(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp"]) != 0
    assert PIP in capsys.readouterr().err


@pytest.mark.usefixtures("without_sdk")
async def test_a_daemon_that_does_not_want_it_needs_no_sdk(tmp_path: Path) -> None:
    async with serving(tmp_path, tools(tmp_path)) as served, served.bare() as client:
        assert (await client.get("/healthz")).status_code == 200


def test_the_sdk_is_imported_only_where_it_is_wanted() -> None:
    modules = "app.serve, cli.mcp, transports.mcp.session, transports.mcp.endpoint"
    code = "import sys\n" + "".join(
        f"import session_runtime.{name}\n" for name in modules.split(", ")
    )
    code += "print([name for name in ('mcp', 'mcp_types') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(RUNTIME)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


async def test_what_cannot_be_imported_fails_its_own_requests_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "session_runtime.transports.mcp.streamable", None)
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.bare() as client:
        assert (await client.post("/mcp", json={})).status_code == 500
        assert (await client.get("/healthz")).status_code == 200
