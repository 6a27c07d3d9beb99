"""Log lines that no message can break out of."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import session_runtime
from session_runtime.app.logs import MOST_CHARS, JsonLines, TextLines, set_up_logging
from session_runtime.config.runtime import LogSettings

EVIL = "tool 'x\n2026-01-01 fake line' \x1b[31mred"


def record(message: str) -> logging.LogRecord:
    return logging.LogRecord("session_runtime.x", logging.ERROR, "f", 1, "%s", (message,), None)


@pytest.mark.requirement("SEC-4a")
def test_a_message_cannot_start_a_line_or_speak_to_the_terminal() -> None:
    line = TextLines().format(record(EVIL))
    assert line.isprintable()
    assert line.endswith(r"session_runtime.x: tool 'x\n2026-01-01 fake line' \x1b[31mred")


@pytest.mark.requirement("SEC-4a")
def test_the_message_of_an_exception_cannot_speak_to_the_terminal_either() -> None:
    told = record("it failed")
    error = ValueError(EVIL)
    told.exc_info = (ValueError, error, None)
    assert TextLines().format(told).replace("\n", "").isprintable()


@pytest.mark.requirement("SEC-4a")
def test_what_a_remote_server_says_that_cannot_be_read_is_not_written_in_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    names = ("httpx2", "mcp", "mcp.client", "client", "watchfiles")
    before = {name: logging.getLogger(name).level for name in names}
    level = root.level
    try:
        set_up_logging(LogSettings())
        logging.getLogger("mcp.client.streamable_http").exception("Error parsing SSE message")
        logging.getLogger("client").warning(
            "Failed to validate notification: notifications/message"
        )
        logging.getLogger("session_runtime.mcp").error("the server is down")
    finally:
        root.setLevel(level)
        for name in names:
            logging.getLogger(name).setLevel(before[name])
    told = capsys.readouterr().err
    assert "the server is down" in told
    assert "Error parsing" not in told
    assert "Failed to validate" not in told


@pytest.mark.requirement("SEC-4a")
def test_as_json_it_is_one_line_with_its_parts() -> None:
    line = JsonLines().format(record(EVIL))
    assert "\n" not in line
    parsed = json.loads(line)
    assert (parsed["level"], parsed["logger"], parsed["message"]) == (
        "error",
        "session_runtime.x",
        EVIL,
    )


KEY = "Zq9db47ec53fe0de07c0"


def raised(message: str) -> logging.LogRecord:
    told = logging.LogRecord("handlers.x", logging.ERROR, "f", 1, "no %s", (message,), None)
    try:
        raise ValueError(message)
    except ValueError as error:
        told.exc_info = (ValueError, error, error.__traceback__)
    return told


@pytest.mark.requirement("CFG-4a")
@pytest.mark.parametrize("lines", [TextLines(), JsonLines()])
def test_secrets_in_what_handlers_say_and_in_exceptions_are_masked(
    lines: logging.Formatter,
) -> None:
    line = lines.format(raised(f"password={KEY}"))
    assert KEY not in line
    assert line.count("password=***") == 2


@pytest.mark.requirement("CFG-4a")
def test_what_the_daemon_itself_says_of_a_key_is_written_as_it_is() -> None:
    told = record("models.main.api_key: env:MAIN_API_KEY is not set")
    assert TextLines().format(told).endswith("models.main.api_key: env:MAIN_API_KEY is not set")


@pytest.mark.requirement("SEC-4a")
def test_of_what_is_very_long_the_beginning_of_a_message_and_the_end_of_a_traceback_are_written() -> (
    None
):
    line = TextLines().format(raised(("x" * 100 + "\n") * 1_000 + "the end"))
    message, _, traceback = line.partition("[cut]\n")
    assert MOST_CHARS <= len(message) <= MOST_CHARS + 1_000
    assert len(traceback) <= MOST_CHARS + 10
    assert traceback.endswith("the end")


CRASHES = """
import sys, threading, warnings
from session_runtime.app.logs import report_crashes, set_up_logging
from session_runtime.config.runtime import LogSettings

def crash():
    raise ValueError("password=" + sys.argv[1])

set_up_logging(LogSettings())
report_crashes()
odd = [type("Odd", (), {"__del__": lambda self: crash()})()]
odd.clear()
thread = threading.Thread(target=crash, name="worker")
thread.start()
thread.join()
warnings.warn("password=" + sys.argv[1])
crash()
"""


@pytest.mark.requirement("CFG-4a")
def test_what_nobody_catches_is_written_without_secrets_too() -> None:
    sources = str(Path(session_runtime.__file__).parents[1])
    command = [sys.executable, "-c", CRASHES, KEY]
    env = {"PYTHONPATH": sources}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert KEY not in done.stderr
    assert done.stderr.count("ValueError: password=***") == 3
    assert "unexpected failure in thread worker" in done.stderr
    assert "UserWarning: password=***" in done.stderr
