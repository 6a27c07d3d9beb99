import json
import re
import signal
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from session_runtime.cli import exits
from session_runtime.cli import serve as serve_module
from session_runtime.errors import StartError
from tests.cli.conftest import Done, Run, start


@pytest.mark.requirement("INT-5")
@pytest.mark.parametrize(
    ("options", "files", "explicit"),
    [
        ((), (None, None, False), {}),
        (("--config", "x.toml"), ("x.toml", None, False), {}),
        (("--env-file", "x.env"), (None, "x.env", False), {}),
        (("--last-good",), (None, None, True), {}),
        (
            ("--host", "::1", "--port", "0", "--json"),
            (None, None, False),
            {"http.host": "::1", "http.port": 0, "log.format": "json"},
        ),
    ],
)
def test_options_win_over_the_configuration(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    files: tuple[str | None, str | None, bool],
    explicit: Mapping[str, object],
) -> None:
    served: list[object] = []

    def serve(
        path: str | None, explicit: Mapping[str, object], *, env_file: str | None, last_good: bool
    ) -> int:
        served.append(((path, env_file, last_good), explicit))
        return 5

    monkeypatch.setattr(serve_module, "serve", serve)
    assert run("serve", *options) == Done(5, "", "")
    assert served == [(files, explicit)]


def test_a_start_that_fails_is_told_in_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(*arguments: object, **options: object) -> int:
        raise StartError("cannot listen on 127.0.0.1:1")

    monkeypatch.setattr(serve_module, "serve", serve)
    assert run("serve") == Done(1, "", "error: cannot listen on 127.0.0.1:1\n")


@pytest.mark.requirement("NET-1a")
def test_the_daemon_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    with start(tmp_path, "serve", "--port", "0") as process:
        assert process.stderr is not None
        lines = (re.search(r"serving on (http://127\.0\.0\.1:\d+)", s) for s in process.stderr)
        found = next(line for line in lines if line)
        request = urllib.request.Request(
            f"{found[1]}/v1/ask",
            json.dumps({"text": "what is 2+3"}).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            answer = json.load(response)
        process.send_signal(signal.SIGTERM)
        log = process.stderr.read()
    assert (answer["outcome"], answer["text"]) == ("answered", "5")
    assert process.returncode == 0
    assert "Traceback" not in log


FEW_FILES = """
import resource, sys
from session_runtime.cli import main

resource.setrlimit(resource.RLIMIT_NOFILE, (300, 500))
sys.exit(main(["serve", "--port", "0"]))
"""


def test_the_daemon_allows_itself_the_files_it_needs_when_it_starts(tmp_path: Path) -> None:
    with start(tmp_path, code=FEW_FILES) as process:
        assert process.stderr is not None
        log = [next(process.stderr)]
        while "serving on" not in log[-1]:
            log.append(next(process.stderr))
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert "256 asks at once (runtime.max_concurrent_asks) may need 1280 open files" in log[0]
    assert re.search(r"^Max open files +500 +500 ", limits, re.MULTILINE)


def test_a_fault_of_an_option_names_the_option(run: Run) -> None:
    done = run("serve", "--host", "0.0.0.0")
    assert (done.code, done.out) == (exits.CONFIG, "")
    assert done.err.startswith("error: --host: http.host: ")
