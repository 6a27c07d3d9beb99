"""One call of a tool, one concern per function: statistics, revocation, arguments, consent, time, the tool.

Whatever goes wrong becomes a result in words (ASK-4); what a source raises is classified here.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from session_runtime.config.tools import Destructive
from session_runtime.errors import PermanentError, ToolError, TransientError
from session_runtime.handler import HandlerContext
from session_runtime.registry.catalog import Catalog
from session_runtime.registry.invoke.encode import encodable
from session_runtime.registry.invoke.results import Draft, Place, Renderer
from session_runtime.registry.policy import routed_as
from session_runtime.registry.registry import Registry
from session_runtime.registry.revocations import Revocations
from session_runtime.registry.spec import ToolSource, ToolSpec
from session_runtime.types import LOCAL, Identity, Principal, ToolResult, ToolStatus

CANCEL_GRACE_S: Final = 1.0
MAX_ERROR_CHARS: Final = 1000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Call:
    catalog: Catalog
    spec: ToolSpec
    arguments: Mapping[str, Any]
    context: HandlerContext
    max_result_chars: int
    place: Place | None
    caller: Identity

    @property
    def source(self) -> ToolSource:
        return self.catalog.sources[self.spec.source_id]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the model is told; ``code`` is None if the call went well.

    ``whole_chars`` is the length of the whole result if the model is not shown all of it.
    """

    content: str
    code: str | None = None
    refused: bool = False
    whole_chars: int | None = None

    @property
    def status(self) -> ToolStatus:
        if self.code is None:
            return "ok"
        return "refused" if self.refused else "error"


@dataclass(frozen=True, slots=True)
class _Returned:
    """What may be shown of a result, None if nothing can be, and the type that the tool returned."""

    draft: Draft | None
    kind: str


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


class Invoker:
    """Calls tools of a catalogue and counts what happened.

    ``default_timeout_s`` and ``max_result_chars`` hold for tools that do not set their own. Unless
    ``destructive`` is ``allow``, tools that are destructive are not run (RTE-9). A tool that does not
    stop within ``grace_s`` seconds of being cancelled is left behind. All results that take long to show
    are made readable by ``renderer``. What ``revocations`` take away is not run, or stopped (REL-9).
    """

    def __init__(
        self,
        registry: Registry,
        default_timeout_s: float,
        max_result_chars: int,
        destructive: Destructive = "confirm",
        grace_s: float = CANCEL_GRACE_S,
        renderer: Renderer | None = None,
        revocations: Revocations | None = None,
    ) -> None:
        self._registry = registry
        self._default_timeout_s = default_timeout_s
        self._max_result_chars = max_result_chars
        self._destructive = destructive
        self._grace_s = grace_s
        self._renderer = renderer or Renderer()
        self._revocations = revocations or Revocations()
        self._left_behind: set[asyncio.Task[_Returned | _Raised]] = set()

    async def invoke(
        self,
        catalog: Catalog,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        context: HandlerContext,
        place: Place | None = None,
        note: str = "",
        principal: Principal = LOCAL,
    ) -> ToolResult:
        """Run one tool of ``catalog`` and put its result, or what went wrong, into words.

        ``place`` is where the whole of a result that is too long is kept (ASK-8b). ``note`` is added
        below the result, within the same limit; where that leaves no half of it, it is left out.
        ``principal`` is who asks for the identity of ``context``. Raises nothing but the cancellation of
        the caller, after the tool was cancelled too.
        """
        clock = asyncio.get_running_loop().time
        started = clock()
        limit = spec.max_result_chars or self._max_result_chars
        below = f"\n{note}" if note and 2 * len(note) < limit else ""
        caller = routed_as(principal, context.identity)
        call = _Call(catalog, spec, arguments, context, limit - len(below), place, caller)
        error: str | None = "cancelled"
        try:
            answer = await self._heed_revocations(call)
            error = answer.content if answer.code else None
        finally:
            latency_s = clock() - started
            self._registry.record(spec, latency_s, error, call.source.is_loaded(spec))
        return ToolResult(
            context.call_id,
            spec.name,
            answer.status,
            f"{answer.content}{below}",
            error_code=answer.code,
            latency_s=latency_s,
            whole_chars=answer.whole_chars,
        )

    async def _heed_revocations(self, call: _Call) -> _Answer:
        """Refuse a revoked tool, and cut off the call of one that is revoked meanwhile (REL-9)."""
        name, clock = call.spec.name, asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(None) as until_revoked:
                with self._revocations.watching(name, lambda: until_revoked.reschedule(clock())):
                    if self._revocations.blocks(name) is not None:
                        return _taken_away(f"{name} was not run: an operator has taken it away.")
                    return await self._check_arguments(call)
        except TimeoutError:
            if not until_revoked.expired():
                raise
        return _taken_away(
            f"{name} was stopped, as an operator has taken it away. It may have taken effect."
        )

    async def _check_arguments(self, call: _Call) -> _Answer:
        problems = await call.catalog.checks[call.spec.name].examine(call.arguments)
        if problems:
            return _Answer(
                f"{call.spec.name} was not run: {'; '.join(problems)}. "
                "Call it again with corrected arguments.",
                "tool.invalid_arguments",
            )
        return await self._ask_consent(call)

    async def _ask_consent(self, call: _Call) -> _Answer:
        """Nobody can be asked yet, so what needs consent is refused (RTE-9)."""
        name = call.spec.name
        if call.spec.annotations.destructive and self._destructive != "allow":
            return _Answer(
                f"{name} was not run and nothing was changed: it is destructive and needs a "
                "confirmation, which cannot be given yet. Trying again will not help; an operator can "
                'allow such tools by [access] destructive = "allow".',
                "tool.needs_confirmation",
                refused=True,
            )
        return await self._limit_time(call)

    async def _limit_time(self, call: _Call) -> _Answer:
        """Wait for the tool in a task of its own: the wait ends even if the tool ignores that."""
        now = asyncio.get_running_loop().time()
        own_limit_s = (
            self._default_timeout_s if call.spec.timeout_s is None else call.spec.timeout_s
        )
        deadline = now + own_limit_s
        if call.context.deadline is not None:
            deadline = min(deadline, call.context.deadline)
        if deadline <= now:
            return _Answer(
                f"{call.spec.name} was not run: the time for this request is up.", "tool.timeout"
            )
        call = replace(call, context=replace(call.context, deadline=deadline))
        task = asyncio.create_task(self._run(call), name=f"call of {call.spec.name}")
        try:
            await asyncio.wait({task}, timeout=deadline - now)
            if task.done():
                return _answer(call, task.result())
        finally:
            if not task.done():
                await self._stop(task)
        return _time_is_up(call, task, deadline - now)

    async def _run(self, call: _Call) -> _Returned | _Raised:
        try:
            route = call.source.routes(call.spec, call.caller)[0]
            value = await route.run(call.arguments, call.context)
            if _is_cancelled():  # the tool ignored that, and nobody waits for its result
                return _Raised(asyncio.CancelledError())
            reference = call.place.reference if call.place is not None else None
            draft = await self._renderer.draft(value, call.max_result_chars, reference)
            return _Returned(draft, type(value).__name__)
        except BaseException as error:  # noqa: BLE001 - a tool may raise anything, even SystemExit
            return _Raised(error)

    async def _stop(self, task: asyncio.Task[_Returned | _Raised]) -> None:
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=self._grace_s)
        finally:
            if not task.done():
                self._left_behind.add(task)
                task.add_done_callback(self._left_behind.discard)
                _log.error("the %s ignores that it was cancelled and goes on", task.get_name())


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _answer(call: _Call, outcome: _Returned | _Raised) -> _Answer:
    """Put an outcome that came in time into words; what comes later is never kept."""
    name = call.spec.name
    if isinstance(outcome, _Raised):
        return _failure(call.spec, outcome.error)
    if outcome.draft is None:
        return _Answer(
            f"{name} ran, but returned a {outcome.kind}, which cannot be shown. A handler "
            "returns text, None, JSON data, bytes, a Table or an Image. Trying again will not help.",
            "tool.bad_result",
        )
    shown = outcome.draft.settle(call.place)
    return _Answer(shown.content, whole_chars=shown.whole_chars)


def _taken_away(what_happened: str) -> _Answer:
    """The refusal of a revoked tool; the operator's reason is not for the model."""
    return _Answer(
        f"{what_happened} Trying again will not help: go on without it, or say what you cannot do.",
        "tool.revoked",
        refused=True,
    )


def _time_is_up(call: _Call, task: asyncio.Task[_Returned | _Raised], limit_s: float) -> _Answer:
    """Say of a stopped call whether it may have reached the tool."""
    name = call.spec.name
    if task.cancelled() or not call.source.is_loaded(call.spec):
        return _Answer(
            f"{name} was not run: it could not begin within {limit_s:.3g} s. Trying again later may "
            "help.",
            "tool.timeout",
        )
    if task.done():
        match task.result():
            case _Raised(TransientError() as error):
                return _failure(call.spec, error)
    return _Answer(
        f"{name} was stopped after {limit_s:.3g} s without a result. It may have taken effect; "
        "trying again will probably take as long.",
        "tool.timeout",
    )


def _failure(spec: ToolSpec, error: BaseException) -> _Answer:
    """Say what failed and whether trying again helps; the traceback is for the log alone (SEC-4)."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = _words(error)
    match error:
        case ToolError():
            return _Answer(words, _code(error))
        case TransientError():
            when = f"in {error.retry_after_s:.3g} s" if error.retry_after_s else "later"
            return _Answer(
                f"{spec.name} is not available now: {words.rstrip('.')}. Trying again {when} may help.",
                "tool.unavailable",
            )
        case PermanentError(code="tool.import_failed"):
            return _Answer(
                f"{spec.name} was not run: {words.rstrip('.')}. The import will be tried again at the "
                "next call; a fault in the file stays until the file is fixed and read again.",
                error.code,
            )
        case PermanentError():
            return _Answer(
                f"{spec.name} failed: {words.rstrip('.')}. Trying again will not help.",
                _code(error),
            )
        case _:
            _log.warning("tool %s failed", spec.name, exc_info=error)
            kind = type(error).__name__
            return _Answer(
                f"{spec.name} failed: {f'{kind}: {words}' if words else kind}. It may have taken "
                "effect in part; the same call will probably fail again.",
                "tool.failed",
            )


def _code(error: PermanentError) -> str:
    """The error's own code; a tool may have given something that is none."""
    code: object = error.code
    return code if type(code) is str and code else "tool.failed"


def _words(error: BaseException) -> str:
    try:
        text = encodable(str(error))
    except BaseException:  # noqa: BLE001 - an exception of a tool may fail to say what it is
        return "it cannot say why"
    return text if len(text) <= MAX_ERROR_CHARS else f"{text[:MAX_ERROR_CHARS]}…"
