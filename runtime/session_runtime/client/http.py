"""Asks a daemon over HTTP; what may be lost is sent again under the same key, so that nothing runs twice.

For backends. What goes over a connection is decided in ``http_line``; what a request means, by the daemon.
"""

import asyncio
import logging
import math
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import httpx2

from session_runtime.client.asking import asked, seconds
from session_runtime.client.attempts import Attempts
from session_runtime.client.http_answers import HttpAnswer, InvokeAnswer
from session_runtime.client.http_line import CutError, HttpLine
from session_runtime.client.http_told import is_cancelled, part, parts, refusal_of
from session_runtime.client.http_tries import OnEvent, Run, no_answer
from session_runtime.client.pauses import Pauses, Waits
from session_runtime.errors import RequestError, SessionRuntimeError, TransientError
from session_runtime.types import AskRequest, Identity
from session_runtime.wire import written_request

LEAVE_S: Final = 5.0
"""How long whoever gives up an ask waits for the daemon to hear of it."""

UNKNOWN_ASK: Final = "request.unknown_ask"

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)


class HttpClient:
    """Speaks to one daemon while the block runs; asks may run at the same time.

    ``key`` is that of the principal. All methods raise RequestError for what has to be changed first,
    PermanentError for what cannot be had, and TransientError if there was no answer within ``timeout_s``
    seconds: ``daemon.no_answer``, or why it is busy for longer. ``may_have_run`` of each tells more.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8040",
        *,
        key: str | None = None,
        timeout_s: float = 300.0,
        pauses: Pauses | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._timeout_s = seconds("timeout_s", timeout_s)
        self._line = HttpLine(url, key, transport)
        self._pauses = pauses or Pauses()

    async def __aenter__(self) -> "HttpClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._line.aclose()

    async def ask(
        self,
        request: AskRequest | Mapping[str, Any] | str,
        *,
        on_event: OnEvent | None = None,
        deadline_s: float | None = None,
        timeout_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> HttpAnswer:
        """Ask, and give the answer; events go to ``on_event``.

        What is busy, cut off or restarted is sent again with the same key, and goes on where it was. Whoever
        is cancelled or gives up here cancels the ask; but one with an ``idempotency_key`` goes on, for all
        who wait for it or come back with that key: ``deadline_s`` bounds it, and ``cancel`` ends it.
        """
        return await self._run(
            "/v1/ask", asked(request, deadline_s), on_event, timeout_s, idempotency_key
        )

    async def start(
        self,
        request: AskRequest | Mapping[str, Any] | str,
        *,
        callback: str | None = None,
        idempotency_key: str | None = None,
    ) -> str:
        """Start an ask that goes on alone; gives its id. ``callback`` names who is told of its end.

        Where no id came, it may go on all the same (``may_have_run``): with an ``idempotency_key`` the same
        call finds it again.
        """
        body = {**asked(request), "detach": True}
        if callback is not None:
            body["callback"] = callback
        answer = await self._send("POST", "/v1/ask", body, idempotency_key)
        return part(answer, "ask_id", str, may_have_run=True)

    async def confirm(
        self,
        ask_id: str,
        *,
        confirmations: Sequence[str] = (),
        declined: Sequence[str] = (),
        text: str | None = None,
        on_event: OnEvent | None = None,
        timeout_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> HttpAnswer:
        """Go on where a kept ask waits for a person, as a new ask."""
        said = {"confirmations": [*confirmations], "declined": [*declined], "text": text}
        body = {name: value for name, value in said.items() if value}
        path = f"{_place(ask_id)}/confirm"
        return await self._run(path, body, on_event, timeout_s, idempotency_key)

    async def invoke(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        identity: Identity | None = None,
        confirmations: Sequence[str] = (),
        on_event: OnEvent | None = None,
        deadline_s: float | None = None,
        timeout_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> InvokeAnswer:
        """Call a tool by its name, where the daemon offers that; once, however often it is sent."""
        who = AskRequest(identity=identity or Identity(), confirmations=confirmations)
        body = {**asked(who, deadline_s), "arguments": dict(arguments or {})}
        path = f"/v1/tools/{_segment('tool', tool)}/invoke"
        return InvokeAnswer(await self._run(path, body, on_event, timeout_s, idempotency_key))

    async def events(self, ask_id: str, after: int = 0) -> AsyncIterator[Mapping[str, Any]]:
        """What a kept ask reports after that ``seq``, to its end; a lost connection is made anew.

        There is no end to how long the ask may take; without a connection it is over after ``timeout_s``.
        """
        waits, until = self._waits(), self._until(self._timeout_s)
        while True:
            path = f"{_place(ask_id)}/events?{urlencode({'after': after})}"
            try:
                async with self._line.stream("GET", path) as stream:
                    until = self._until(self._timeout_s)
                    async for event in stream.events():
                        after = part(event, "seq", int)
                        waits = self._waits()
                        yield event
                        if event["type"] == "ask.finished":
                            return
                if part(await self.get(ask_id), "state", str) == "ended":
                    return  # all of it had been seen
            except (CutError, TransientError) as error:
                try:
                    await self._pause(waits, error, until)
                except CutError as late:
                    gone = Attempts(cause=late, looks=True)
                    raise no_answer(gone, self._timeout_s, over=False) from late
            else:
                await self._pause(waits, None)

    async def get(self, ask_id: str) -> Mapping[str, Any]:
        """How far an ask is, or how it ended if it is kept."""
        return await self._send("GET", _place(ask_id))

    async def cancel(self, ask_id: str) -> bool:
        """End an ask; whether it had not ended, and was not told to, before."""
        attempts = Attempts()
        answer = await self._send("DELETE", _place(ask_id), attempts=attempts)
        if part(answer, "cancelled", int, may_have_run=True):
            return True
        return attempts.unsure and is_cancelled(await self.get(ask_id))

    async def models(self) -> tuple[str, ...]:
        """The profiles, the default one first."""
        data = parts(await self._send("GET", "/v1/models"), "data")
        return tuple(part(each, "id", str) for each in data)

    async def tools(
        self, identity: Identity | None = None, *, schemas: bool = False
    ) -> tuple[Mapping[str, Any], ...]:
        """All tools that the identity may use; without one, those of the principal."""
        who = identity or Identity()
        pairs = [("user", who.user), ("channel", who.channel), ("group", who.group)]
        query = [(name, value) for name, value in pairs if value is not None]
        query += [("role", role) for role in sorted(who.roles or ())]
        query += [("schemas", "true")] if schemas else []
        tools: list[Mapping[str, Any]] = []
        after: str | None = ""
        while after is not None:
            more = [("after", after)] if after else []
            page = await self._send("GET", f"/v1/tools?{urlencode([*query, *more])}")
            tools += parts(page, "tools")
            after = None if page.get("next") is None else part(page, "next", str)
        return tuple(tools)

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
        *,
        attempts: Attempts | None = None,
    ) -> Mapping[str, Any]:
        """Send a request that is answered at once, again if that is harmless: with a key it is."""
        data = None if body is None else written_request(body)
        named = None if body is None else key or _new_key()
        attempts = attempts or Attempts(looks=method == "GET")
        fetch = partial(self._line.fetch, method, path, data, named, leaves=attempts.leave)
        return await self._in_time(self._again(fetch, attempts), self._timeout_s, attempts)

    async def _again(self, fetch: Callable[[], Awaitable[T]], attempts: Attempts) -> T:
        waits, until = self._waits(), self._until(self._timeout_s)
        while True:
            attempts.begin()
            try:
                return await fetch()
            except (CutError, SessionRuntimeError) as error:
                if isinstance(error, SessionRuntimeError) and not error.may_have_run:
                    attempts.refuse(attempts.number)
                if not isinstance(error, CutError | TransientError):
                    raise
                attempts.cause = error
                await self._pause(waits, error, until)

    async def _run(
        self,
        path: str,
        body: Mapping[str, Any],
        on_event: OnEvent | None,
        timeout_s: float | None,
        key: str | None,
    ) -> HttpAnswer:
        run = Run(path, written_request(body), key or _new_key(), on_event)
        limit_s = self._timeout_s if timeout_s is None else seconds("timeout_s", timeout_s)
        try:
            return await self._in_time(
                self._finish(run, self._until(limit_s)), limit_s, run.attempts
            )
        except (asyncio.CancelledError, SessionRuntimeError):
            if key is None:  # under a key of the caller's, others may wait, or come back for it
                await self._leave(run)
            raise

    async def _finish(self, run: Run, until: float) -> HttpAnswer:
        """Send and follow until there is an answer."""
        waits = self._waits()
        while True:
            seen = run.seq
            try:
                result = await self._follow(run)
                if (refused := refusal_of(result)) is None:
                    return run.answer(result)
                run.refused()
                raise refused
            except (CutError, TransientError) as error:
                run.attempts.cause = error
                waits = self._waits() if run.seq > seen else waits
                await self._pause(waits, error, until)
            except RequestError as error:
                if error.code != UNKNOWN_ASK or run.ask_id is None:
                    raise
                run.forget()

    async def _follow(self, run: Run) -> Mapping[str, Any]:
        """One attempt: ask, or come back to the ask; gives its result."""
        asks = run.ask_id is None
        if asks:
            run.attempts.begin()
            request = self._line.stream(
                "POST", run.path, run.body, run.key, leaves=run.attempts.leave
            )
        else:
            path = f"{_place(str(run.ask_id))}/events?{urlencode({'after': run.seq})}"
            request = self._line.stream("GET", path)
        try:
            async with request as stream:
                run.ask_id = stream.ask_id or run.ask_id
                async for event in stream.events():
                    run.hear(event)
                    if event["type"] == "ask.finished":
                        return part(event, "result", dict)
        except SessionRuntimeError as error:
            if asks and not error.may_have_run:
                run.refused()
            raise
        raise CutError("the events ended before the ask")

    async def _leave(self, run: Run) -> None:
        """Tell the daemon that nobody waits for the ask any more; best effort, and not for long.

        If the ask has no name here yet, the same is sent again: that joins it, and tells its name.
        """
        with suppress(SessionRuntimeError, CutError, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                if run.ask_id is None and run.attempts.may_have_run:
                    async with self._line.stream("POST", run.path, run.body, run.key) as stream:
                        run.ask_id = stream.ask_id
                if run.ask_id is not None:
                    await self._line.fetch("DELETE", _place(run.ask_id))

    async def _in_time(self, work: Awaitable[T], timeout_s: float, attempts: Attempts) -> T:
        """Give what the work gives; what it raises says whether any attempt may have run."""
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                return await work
        except (TimeoutError, CutError) as error:
            if isinstance(error, TimeoutError) and not limit.expired():
                raise
            raise no_answer(attempts, timeout_s, over=limit.expired()) from error
        except TransientError as error:
            if attempts.may_have_run:
                raise no_answer(attempts, timeout_s, over=False) from error
            raise
        except SessionRuntimeError as error:
            attempts.told_by(error)
            raise

    def _until(self, limit_s: float) -> float:
        return asyncio.get_running_loop().time() + limit_s

    def _waits(self) -> Waits:
        return Waits(self._pauses.jitter)

    async def _pause(self, waits: Waits, error: Exception | None, until: float = math.inf) -> None:
        """Wait before the next attempt; raise what was said if that would come too late."""
        asked_s = error.retry_after_s if isinstance(error, TransientError) else None
        wait_s = waits.next(asked_s or 0.0)
        late = asyncio.get_running_loop().time() + wait_s >= until
        if late and error is not None:
            raise error
        if error is not None:
            _log.info("the request is sent again: %s", error)
        await self._pauses.sleep(wait_s)


def _place(ask_id: str) -> str:
    return f"/v1/asks/{_segment('ask_id', ask_id)}"


def _segment(what: str, name: str) -> str:
    """A name as one part of a path; RequestError for what would lead elsewhere."""
    if name in ("", ".", ".."):
        raise RequestError(f"{what} is {name!r}, which names nothing")
    return quote(name, safe="", errors="replace")


def _new_key() -> str:
    return secrets.token_hex(16)
