"""Log lines that no message can break out of."""

import json
import logging

import pytest

from session_runtime.app.logs import JsonLines, TextLines, set_up_logging
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
