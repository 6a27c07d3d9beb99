"""Web sites on loopback that answer in whatever way a test needs, and clients that may read them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from session_runtime.config.web import WebSettings
from session_runtime.errors import ToolError
from session_runtime.toolbox.web.client import WebClient
from session_runtime.toolbox.web.lookup import Resolve
from session_runtime.toolbox.web.reading import open_page_reader

Answer = Callable[[str], AsyncIterator[bytes]]

LOOPBACK = "127.0.0.1"


@dataclass
class Site:
    """A listening server: its port, the head of every request, and how many connections there were."""

    port: int = 0
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    open_now: int = 0
    most_open: int = 0

    @property
    def paths(self) -> list[str]:
        return [head.split()[1] for head in self.heads]

    def url(self, path: str = "/", host: str = LOOPBACK, scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@asynccontextmanager
async def site(
    answer: Answer, *, host: str = LOOPBACK, context: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    """Serve; every connection gets one answer and is closed."""
    served = Site()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        served.open_now += 1
        served.most_open = max(served.most_open, served.open_now)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            served.heads.append(head)
            async for piece in answer(head):
                writer.write(piece)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            served.open_now -= 1
            writer.close()

    tasks: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accepted, host, 0, ssl=context)
    served.port = server.sockets[0].getsockname()[1]
    async with server:
        yield served
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def page(
    body: bytes | str,
    content_type: str | None = "text/plain; charset=utf-8",
    status: str = "200 OK",
    **headers: str,
) -> bytes:
    """A whole answer with its length."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


def says(body: bytes | str, content_type: str | None = "text/plain", **headers: str) -> Answer:
    """Always the same answer."""

    async def answer(head: str) -> AsyncIterator[bytes]:
        yield page(body, content_type, **headers)

    return answer


async def endless(first: bytes, piece: bytes) -> AsyncIterator[bytes]:
    """An answer that begins with ``first`` and goes on with ``piece`` for ever."""
    yield first
    while True:
        yield piece


def routes(answers: Mapping[str, bytes]) -> Answer:
    """One answer per path."""

    async def answer(head: str) -> AsyncIterator[bytes]:
        yield answers[head.split()[1]]

    return answer


def to(location: str, status: str = "302 Found") -> bytes:
    """A redirect."""
    return page("", status=status, Location=location)


def names(**known: str) -> Resolve:
    """A resolver that knows these names alone; dots are written as ``_``, addresses parted by blanks."""
    table = {name.replace("_", "."): addresses.split() for name, addresses in known.items()}

    async def look_up(name: str) -> Sequence[str]:
        if name not in table:
            raise OSError(f"{name} is not known")
        return table[name]

    return look_up


def client(
    *sites: Site, look_up: Resolve | None = None, context: Any = None, **keys: Any
) -> WebClient:
    """A client that may read the ports of ``sites`` on 127.0.0.1, unless ``keys`` say otherwise."""
    settings = WebSettings(
        **{
            "enabled": True,
            "ports": tuple(each.port for each in sites),
            "allow_networks": (LOOPBACK,),
            **keys,
        }
    )
    return WebClient(
        settings,
        open_page_reader(),
        context or ssl.create_default_context(),
        look_up or names(site_test=LOOPBACK),
    )


async def refusal(web: WebClient, url: str, code: str) -> str:
    """The words with which an address is refused."""
    with pytest.raises(ToolError) as caught:
        await web.fetch(url)
    assert caught.value.code == code
    return str(caught.value)
