"""A model service on the loopback interface, for tests and load: it plays replies on all wires.

``python -m session_runtime.testing.upstream --port 8200`` runs one in a process of its own that
behaves as ``echo`` says.
"""

import argparse
import asyncio
import inspect
import itertools
import json
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from session_runtime.testing.chains import Chains
from session_runtime.testing.chat_form import as_completion
from session_runtime.testing.conversation import Request, question_of
from session_runtime.testing.echo import echo
from session_runtime.testing.message_form import as_message, refused
from session_runtime.testing.replies import Pace, RawReply, Reply, reply_error
from session_runtime.testing.response_form import as_response, output_of, response_id
from session_runtime.testing.server import Connection, HttpRequest

HOST: Final = "127.0.0.1"
_PATHS: Final = ("/chat/completions", "/responses", "/messages")
_GOLDEN: Final = 0.618_033_988_749_895

Replies = (
    Sequence[Reply]
    | Mapping[str, Sequence[Reply]]
    | Callable[[Request], Reply]
    | Callable[[Request], Awaitable[Reply]]
)


class Upstream:
    """Serves chat completions, Responses and Messages while it is entered.

    ``replies`` are played in the order in which requests arrive; or, so that asks in parallel cannot
    take each other's, per text of the last user message; or they are made by a function of the
    request. A request without a reply left is refused (400), with a text that says so. ``bodies`` are
    the raw request bodies in order of arrival, ``requests`` the same parsed, ``headers`` those that
    came with them.

    Responses are stored unless the request says ``store: false``. A function is given a chained request
    with its whole conversation as ``input``. An unknown previous response is refused (404), so is a call
    without an output and an output without a call (400). Likewise refused are Messages that do not keep
    that protocol's rules.
    """

    def __init__(self, replies: Replies, *, port: int = 0, keep: bool = True) -> None:
        self._next_reply = _chooser(replies)
        self._port = port
        self._keep = keep
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._chains = Chains()
        self._arrived = asyncio.Condition()
        self._count = 0
        self.bodies: list[bytes] = []
        self.requests: list[Request] = []
        self.headers: list[Mapping[str, str]] = []

    @property
    def base_url(self) -> str:
        """What a profile's ``base_url`` is to be."""
        return f"http://{HOST}:{self._port}/v1"

    @property
    def open_connections(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._answer, self._connections), HOST, self._port
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
            for connection in tuple(self._connections):
                await connection.abort()
            await self._server.wait_closed()

    async def received(self, count: int) -> None:
        """Wait until at least ``count`` requests have arrived, answered or not."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self._count >= count)

    async def left(self) -> None:
        """Wait until no client is connected any more."""
        for connection in tuple(self._connections):
            await connection.lost()

    async def _answer(self, request: HttpRequest) -> RawReply:
        path = request.path.partition("?")[0]
        ending = path.rpartition("/")[2] if path.endswith(_PATHS) else None
        if request.method != "POST" or ending is None:
            return reply_error(404, f"nothing at {request.method} {path}")
        number = await self._count_arrival(request)
        try:
            question = json.loads(request.body)
        except ValueError as error:
            return reply_error(400, f"the body is no JSON: {error}")
        if self._keep:
            self.requests.append(question)
        if ending == "responses":
            return await self._respond(question, number)
        if ending == "messages":
            refusal = refused(question)
            return refusal or as_message(await self._reply(question), question, number)
        return as_completion(await self._reply(question), question, number)

    async def _respond(self, request: Request, number: int) -> RawReply:
        whole = self._chains.complete(request)
        if isinstance(whole, RawReply):
            return whole
        reply = await self._reply(whole)
        if isinstance(reply, RawReply):
            return reply
        if request.get("store", True):
            conversation = [*whole["input"], *output_of(reply, number)]
            self._chains.keep(response_id(number), conversation)
        return as_response(reply, request, number)

    async def _reply(self, request: Request) -> Reply:
        reply = self._next_reply(request)
        return await reply if inspect.isawaitable(reply) else reply

    async def _count_arrival(self, request: HttpRequest) -> int:
        if self._keep:
            self.bodies.append(request.body)
            self.headers.append(request.headers)
        async with self._arrived:
            self._count += 1
            self._arrived.notify_all()
            return self._count


def _chooser(replies: Replies) -> Callable[[Request], Reply | Awaitable[Reply]]:
    if callable(replies):
        return replies
    if isinstance(replies, Mapping):
        by_question = {question: deque(queue) for question, queue in replies.items()}
        return lambda request: _taken(by_question.get(question_of(request), deque()))
    in_order = deque(replies)
    return lambda request: _taken(in_order)


def _taken(queue: deque[Reply]) -> Reply:
    return queue.popleft() if queue else reply_error(400, "the fake upstream has no reply left")


def _echoing(shortest_s: float, longest_s: float) -> Callable[[Request], Reply]:
    """The echo with waiting times spread evenly over a range, the same in every run."""
    numbers = itertools.count(1)

    def reply(request: Request) -> Reply:
        share = next(numbers) * _GOLDEN % 1.0
        return echo(request, Pace(delay_s=shortest_s + share * (longest_s - shortest_s)))

    return reply


async def _serve(port: int, delay_ms: Sequence[float]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    replies = _echoing(min(delay_ms) / 1000, max(delay_ms) / 1000)
    async with Upstream(replies, port=port, keep=False) as upstream:
        sys.stdout.write(f"{upstream.base_url}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    """Run an echoing server until a signal ends it; its base URL is the first line of the output."""
    parser = argparse.ArgumentParser(prog="python -m session_runtime.testing.upstream")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--delay-ms", type=float, nargs="+", default=[0.0], help="wait this long, or between two"
    )
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.port, arguments.delay_ms))


if __name__ == "__main__":
    main()
