"""What can go wrong between a server and us, and which errors callers get for it.

Where each is noticed is decided in ``client`` and ``http``.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal

from session_runtime.errors import PermanentError, SessionRuntimeError, TransientError
from session_runtime.mcp.stderr_log import Shown

MAX_CHARS: Final = 300
_MAX_PARTS: Final = 8

INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
UNREADABLE: Final = -32700
_OF_CALLS: Final = (METHOD_NOT_FOUND, INVALID_PARAMS)

_PREFIX: Final = r"(?:MCP error -326\d\d: )?"
_NOT_THERE: Final = (
    r"(?:unknown|no such|unrecogni[sz]ed|nonexistent) tool:? {name}",
    r"tool not found: {name}",
    r"tool:? {name} (?:is )?(?:not found|unknown|not known|does not exist|doesn't exist)"
    r"(?:: tool not found)?",
)
_NO_METHOD: Final = re.compile(
    _PREFIX + r"method not found(?:: [\"'`]?tools/call[\"'`]?)?\.?", re.I
)

Kind = Literal["error", "lost", "unreachable", "expired", "busy", "unreadable", "late"]


class Fault(Exception):
    """A request that brought no result.

    ``error``: the server answered with the error ``code``. ``lost``: the connection ended before an answer
    came. ``unreachable``: the request did not reach the server. ``expired``: the server no longer knows the
    session and did nothing. ``busy``: it takes no request now, but may after ``retry_after_s``.
    ``unreadable``: it answered, but not so that it could be read. ``late``: no answer came in time.

    ``begun``: the request was one of a call that the server had begun with, so that it may have run
    whatever the kind.
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        code: int = 0,
        retry_after_s: float | None = None,
        begun: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: Final = kind
        self.code: Final = code
        self.retry_after_s: Final = retry_after_s
        self.begun: Final = begun

    def after_beginning(self) -> "Fault":
        """The same of a call that the server had begun with."""
        return Fault(
            self.kind, str(self), code=self.code, retry_after_s=self.retry_after_s, begun=True
        )


def error_of_call(fault: Fault, server: str, tool: str, shown: Shown) -> SessionRuntimeError:
    """What the caller of a tool gets for a fault (RTE-8)."""
    said = shown(str(fault), MAX_CHARS)
    match fault.kind:
        case "unreadable":
            return bad_result(server, tool, said)
        case "error" if fault.begun:
            return _failed(fault.code, said, server, tool)
        case "error":
            return _refused(fault, said, server, tool)
        case _ if fault.begun:
            return _may_have_run(said, server, tool)
        case "lost" | "late":
            return _may_have_run(said, server, tool)
        case "unreachable":
            return TransientError(
                f"the server {server!r} could not be reached, so {tool!r} did not run: {said}",
                code="mcp.lost",
            )
        case "expired":
            return TransientError(
                f"the server {server!r} needs a new session, so {tool!r} did not run: {said}",
                code="mcp.expired",
            )
        case "busy":
            return TransientError(
                f"the server {server!r} takes no calls of {tool!r} now: {said}",
                code="mcp.rate_limited",
                retry_after_s=fault.retry_after_s,
            )


def _may_have_run(said: str, server: str, tool: str) -> TransientError:
    return TransientError(
        f"no answer of {tool!r} came from the server {server!r}, so that it may have run: {said}",
        code="mcp.lost",
        may_have_run=True,
    )


def bad_result(server: str, tool: str, why: str) -> PermanentError:
    """For a call that has run and whose result cannot be used."""
    return PermanentError(
        f"{tool!r} of the server {server!r} has run, but its result cannot be used: {why}",
        code="mcp.bad_result",
    )


def tool_not_found(server: str, tool: str, said: str) -> PermanentError:
    """For a tool that the server does not have, or no longer."""
    return PermanentError(
        f"the server {server!r} has no tool {tool!r} any more: {said}", code="mcp.tool_not_found"
    )


def _refused(fault: Fault, said: str, server: str, tool: str) -> PermanentError:
    """An error that a server answered with: words of a running tool may be among those of any code."""
    message = str(fault)
    no_method = fault.code == METHOD_NOT_FOUND and _NO_METHOD.fullmatch(message.strip())
    if no_method or (fault.code in _OF_CALLS and says_not_there(message, tool)):
        return tool_not_found(server, tool, said)
    if fault.code == INVALID_PARAMS:
        return PermanentError(
            f"the server {server!r} refuses the arguments of {tool!r}: {said}",
            code="mcp.invalid_arguments",
        )
    return _failed(fault.code, said, server, tool)


def says_not_there(message: str, tool: str) -> bool:
    """Whether all that a message says is that there is no tool of this very name.

    Then it did not run, and may be called again (RTE-8). Anything else may be the words of a tool that did,
    about something else that it did not find.
    """
    name = f"[\"'`]?(?-i:{re.escape(tool)})[\"'`]?"
    forms = "|".join(form.format(name=name) for form in _NOT_THERE)
    return re.fullmatch(rf"{_PREFIX}(?:{forms})\.?", message.strip(), re.I) is not None


def _failed(code: int, said: str, server: str, tool: str) -> PermanentError:
    return PermanentError(
        f"the server {server!r} failed at {tool!r} with the error {code}: {said}",
        code="mcp.internal",
    )


def said_by(error: BaseException, shown: Shown) -> str:
    """What an exception says, or those that it is a group of."""
    said = dict.fromkeys(
        shown(str(leaf), MAX_CHARS) or type(leaf).__name__ for leaf in leaves(error)
    )
    return "; ".join(list(said)[:_MAX_PARTS])[: 2 * MAX_CHARS]


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions that a group is made of, at any depth, or the one itself."""
    waiting = [error]
    while waiting:
        match waiting.pop():
            case BaseExceptionGroup(exceptions=inner):
                waiting.extend(reversed(inner))
            case leaf:
                yield leaf
