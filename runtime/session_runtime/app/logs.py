"""How the daemon logs: one line per event, as text for people or JSON for machines, without secrets.

What its own code says is free of secrets where it is said. What handlers and libraries say, and the words and
source lines of exceptions, are masked here (CFG-4).
"""

import json
import logging
import sys
import threading
from collections.abc import Collection
from datetime import UTC, datetime
from types import TracebackType
from typing import Final

import session_runtime
from session_runtime.config.runtime import LogSettings
from session_runtime.trace.redact import CUT, mask_secrets
from session_runtime.wire import printable

MOST_CHARS: Final = 16_000
"""So much is written of what others say: of a message the beginning, of a traceback the end."""
_BEYOND: Final = 1_000  # looked at behind a cut, so that it splits no secret unseen
_OURS: Final = f"{session_runtime.__name__}."
_log = logging.getLogger(__name__)


class JsonLines(logging.Formatter):
    """One JSON object per line: time (UTC), level, logger, message, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Render one record; a message can never break out of its line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if record.exc_info:
            line["exception"] = _end_of(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """One readable line per event; control characters of the message are escaped (SEC-4)."""

    def format(self, record: logging.LogRecord) -> str:
        """Render one record."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message = _one_line(_message(record))
        line = f"{time} {record.levelname.lower():7} {record.name}: {message}"
        if record.exc_info:
            line += "\n" + printable(_end_of(self.formatException(record.exc_info)))
        return line


def _message(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.name.startswith(_OURS):
        return text
    shown = mask_secrets(text[: MOST_CHARS + _BEYOND])
    return shown if len(text) <= MOST_CHARS else shown[:MOST_CHARS] + CUT


def _end_of(traceback: str) -> str:
    """The last lines, whole ones: what was raised stands there."""
    if len(traceback) > MOST_CHARS:
        start = traceback.find("\n", len(traceback) - MOST_CHARS)
        traceback = CUT + traceback[start if start >= 0 else len(traceback) :]
    return mask_secrets(traceback)


def _one_line(message: str) -> str:
    return printable(message).replace("\n", "\\n").replace("\t", "\\t")


def set_up_logging(settings: LogSettings, errors_only: Collection[str] = ()) -> None:
    """Send the log to standard error; called once by the daemon, never by an embedded runtime.

    ``errors_only`` are names of loggers of which nothing below an error is written.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(
        lambda record: record.levelno >= logging.ERROR or record.name not in errors_only
    )
    handler.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for library in ("httpx2", "mcp", "watchfiles"):
        logging.getLogger(library).setLevel(logging.WARNING)
    # What reads a server writes all that it cannot read, in full; its session calls itself "client".
    for reader in (logging.getLogger("mcp").getChild("client"), logging.getLogger("client")):
        reader.setLevel(logging.CRITICAL)


def report_crashes() -> None:
    """Write to the log what nobody catches, as the interpreter would write it as it is."""
    sys.excepthook = _crashed
    threading.excepthook = _crashed_in_thread
    sys.unraisablehook = _could_not_raise
    logging.captureWarnings(capture=True)


def _crashed(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None, where: str = ""
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    _log.critical("unexpected failure%s", where, exc_info=(kind, error, trace))


def _crashed_in_thread(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is not None and not issubclass(told.exc_type, SystemExit):
        name = "" if told.thread is None else f" in thread {told.thread.name}"
        _crashed(told.exc_type, told.exc_value, told.exc_traceback, name)


def _could_not_raise(told: "sys.UnraisableHookArgs") -> None:
    if told.exc_value is not None:
        _crashed(told.exc_type, told.exc_value, told.exc_traceback, " that was ignored")
