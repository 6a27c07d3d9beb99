"""A receiver of results on loopback, which answers as the test says, and keeps what came."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SECRET = f"whsec_{'QUJD' * 10}"
TAKEN = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"


def status(code: int, *lines: str) -> bytes:
    head = (f"HTTP/1.1 {code} X", *lines, "connection: close", "content-length: 0", "", "")
    return "\r\n".join(head).encode()


@dataclass
class Receiver:
    """Gives the answers in turn, the last one again and again; an empty one hangs up."""

    answers: Sequence[bytes] = (TAKEN,)
    port: int = 0
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/results?of=bot"

    async def received(self, number: int) -> tuple[dict[str, str], bytes]:
        """Wait for the message of that number, from 1 on."""
        async with asyncio.timeout(30):
            while len(self.got) < number:
                self.changed.clear()
                await self.changed.wait()
        _, headers, body = self.got[number - 1]
        return headers, body

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.got.append((first.split(" ")[1], headers, body))
        self.changed.set()
        writer.write(self.answers[min(len(self.got), len(self.answers)) - 1])
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def receiving(*answers: bytes) -> AsyncIterator[Receiver]:
    receiver = Receiver(answers or (TAKEN,))
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver
