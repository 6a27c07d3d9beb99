"""All that a ``handler.py`` may import from this package; everything else may change without notice.

A handler is ``execute(args, context)``, async or plain; a plain one runs in a thread. It returns text
or JSON-able data, bytes, a ``Table`` or an ``Image``, and raises ``ToolError`` to tell the model why it
cannot do what was asked.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from session_runtime.errors import ToolError
from session_runtime.services import Files, Notes, Results, Services, Web
from session_runtime.trace_context import TraceContext
from session_runtime.types import LOCAL, Identity, JsonObject, nothing

__all__ = ["HandlerContext", "Identity", "Image", "Table", "ToolError"]

T = TypeVar("T")

_IMAGE_TYPE = re.compile(r"image/[a-z0-9][a-z0-9.+-]{0,60}")


@dataclass(frozen=True, slots=True)
class Table:
    """A result of rows with the same columns; every row has a cell of JSON data for each column.

    The model gets the names of the columns once. ValueError for a row of another length, TypeError for
    rows that can be read only once.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def __post_init__(self) -> None:
        if isinstance(self.rows, Iterator):
            raise TypeError(f"rows of a Table must be a list, not a {type(self.rows).__name__}")
        width = len(self.columns)
        for number, row in enumerate(self.rows):
            if len(row) != width:
                raise ValueError(f"row {number} has {len(row)} cells for {width} columns")


@dataclass(frozen=True, slots=True)
class Image:
    """A result that is a picture: its bytes and their type, such as ``image/png``.

    ValueError for a type that is no image's.
    """

    data: bytes
    media_type: str

    def __post_init__(self) -> None:
        if not _IMAGE_TYPE.fullmatch(self.media_type):
            raise ValueError(f"{self.media_type!r} is no media type of an image: say image/png")


class ProgressSink(Protocol):
    """Receives progress of one call: ``done`` of ``total`` (None: unknown) and a short text."""

    def __call__(self, done: float, total: float | None, message: str | None) -> None: ...


def _no_progress(done: float, total: float | None, message: str | None) -> None:
    del done, total, message


def _no_message(text: str) -> None:
    del text


@dataclass(frozen=True, slots=True)
class HandlerContext:
    """What one call may know and use.

    ``deadline`` is on the monotonic clock (``time.monotonic()``, in seconds), None without a limit;
    ``idempotency_key`` is the same for every attempt of one call; ``resources`` are objects that the
    embedding program handed to the runtime (a database pool, a bot client); ``conversation`` and
    ``metadata`` are the caller's, as given; ``services`` are what the runtime offers, reached through
    ``files``, ``web``, ``notes`` and ``results``; ``principal`` is the name of who asked for ``identity``;
    ``trace`` is what this call may pass on to another program, as its headers traceparent and tracestate.
    ``emit_message`` and ``progress`` may be called from any thread.
    """

    identity: Identity = field(default_factory=Identity)
    ask_id: str = ""
    call_id: str = ""
    idempotency_key: str = ""
    deadline: float | None = None
    resources: Mapping[str, Any] = field(default_factory=nothing)
    conversation: str | None = None
    metadata: JsonObject = field(default_factory=nothing)
    on_progress: ProgressSink = _no_progress
    on_message: Callable[[str], None] = _no_message
    services: Services = field(default_factory=Services)
    principal: str = LOCAL.name
    trace: TraceContext | None = None

    @property
    def files(self) -> Files:
        """The folders that tools may use; ToolError ``tool.not_configured`` if there are none."""
        return _offered(self.services.files, "no folder is open to tools: see [files]")

    @property
    def web(self) -> Web:
        """Pages of the public internet; ToolError ``tool.not_configured`` if that is off."""
        return _offered(self.services.web, "reading web pages is switched off: see [web]")

    @property
    def notes(self) -> Notes:
        """The notes of whoever asks; ToolError ``tool.not_configured`` if that is off."""
        return _offered(self.services.notes, "notes are switched off: see [notes]")

    @property
    def results(self) -> Results:
        """Long results of this ask; ToolError ``tool.not_configured`` outside of an ask."""
        return _offered(self.services.results, "there are no kept results outside of an ask")

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report how far the call is; becomes a ``tool.progress`` event.

        Raises TypeError for what is no number or text.
        """
        self.on_progress(
            _number(done),
            None if total is None else _number(total),
            None if message is None else _text(message),
        )

    def emit_message(self, text: str) -> None:
        """Send ``text`` to the person asking, at once, while the ask goes on.

        Raises TypeError for what is no text.
        """
        self.on_message(_text(text))


def _offered(service: T | None, why_not: str) -> T:
    if service is None:
        raise ToolError(why_not, code="tool.not_configured")
    return service


def _number(value: object) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"progress must be a finite number, not {value!r:.60}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text must be a str, not {type(value).__name__}")
    return str(value)
