"""The error tree: one class per reaction of the code that catches it, never one per place.

::

    SessionRuntimeError            everything this package raises on purpose
    ├── ConfigError                the operator must edit something; the process exits 78
    ├── StartError                 the machine must change (port in use, state directory locked); exits 1
    ├── RequestError               the caller must change the request; HTTP 400, never retried
    ├── TransientError             the same thing may work later; may carry ``retry_after_s``
    │   └── BusyError              refused before any work began (capacity, draining); HTTP 503
    └── PermanentError             trying the same thing again cannot help
        └── ToolError              raised by a handler: its text is written for the model
            └── UnfinishedError    a sub-agent stopped too early: its text holds what there is so far

``code`` is a dotted, stable name (``model.rate_limited``): clients and metrics rely on it, not on
the text. ``docs/errors.md`` describes every one.
"""

from collections.abc import Iterable
from dataclasses import dataclass


class SessionRuntimeError(Exception):
    """Base of all errors raised on purpose; ``code`` is the stable, dotted name of the fault.

    ``may_have_run``: what was attempted may have taken effect, so that a second time is not harmless.
    """

    def __init__(self, message: str, *, code: str, may_have_run: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.may_have_run = may_have_run


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a configuration: where it is, what was found, and the way out.

    ``key`` is the dotted key (``skills.tool_search_max_results``), ``source`` the file, environment
    variable or other origin that holds the value, ``line`` the 1-based line in that file or None.
    """

    message: str
    key: str = ""
    source: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line is not None else self.source
        return ": ".join(part for part in (place, self.key, self.message) if part)


class ConfigError(SessionRuntimeError):
    """A configuration that cannot be used; lists every problem found, not just the first (CFG-1)."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems), code="config.invalid")


class StartError(SessionRuntimeError):
    """The process cannot start or bind although its configuration is good."""

    def __init__(self, message: str, *, code: str = "start.failed") -> None:
        super().__init__(message, code=code)


class RequestError(SessionRuntimeError):
    """The caller's request is wrong; the text names the field, the value and the way out."""

    def __init__(self, message: str, *, code: str = "request.invalid") -> None:
        super().__init__(message, code=code)


class TransientError(SessionRuntimeError):
    """The same attempt may succeed later; ``retry_after_s`` is the wait the other side asked for."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        retry_after_s: float | None = None,
        may_have_run: bool = False,
    ) -> None:
        super().__init__(message, code=code, may_have_run=may_have_run)
        self.retry_after_s = retry_after_s


class BusyError(TransientError):
    """Refused before any work began: over capacity, or the daemon is draining."""

    def __init__(self, message: str, *, code: str = "busy", retry_after_s: float = 1.0) -> None:
        super().__init__(message, code=code, retry_after_s=retry_after_s)


class PermanentError(SessionRuntimeError):
    """Trying the same thing again cannot help."""

    def __init__(self, message: str, *, code: str, may_have_run: bool = False) -> None:
        super().__init__(message, code=code, may_have_run=may_have_run)


class ToolError(PermanentError):
    """What a handler raises to tell the model, in its own words, why the tool cannot do it."""

    def __init__(self, message: str, *, code: str = "tool.failed") -> None:
        super().__init__(message, code=code)


class UnfinishedError(ToolError):
    """A sub-agent ended before its task did; more of this text is shown than of others."""
