"""A way to a daemon that a test can cut: connections end, or go to another daemon from then on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Way:
    """Passes bytes on to ``target``; as long as that is None, nobody is there."""

    target: int | None
    port: int = 0
    connections: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """End all connections at once."""
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.target is None:
            writer.transport.abort()
            return
        there_reader, there = await asyncio.open_connection("127.0.0.1", self.target)
        self.writers += [writer, there]
        await asyncio.gather(passed(reader, there), passed(there_reader, writer))


async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def way(target: int | None) -> AsyncIterator[Way]:
    there = Way(target)
    handlers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        await there.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    there.port = server.sockets[0].getsockname()[1]
    try:
        yield there
    finally:
        server.close()
        there.cut()
        if handlers:
            await asyncio.wait(handlers)
