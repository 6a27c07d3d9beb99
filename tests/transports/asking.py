"""What tests of asks as resources share: a runtime whose model waits, three principals, and what they do."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from session_runtime import Runtime
from session_runtime.registry.keyring import hash_of
from session_runtime.testing.replies import Pace, reply_text
from session_runtime.testing.upstream import Upstream
from tests.support import chat_profile, opened
from tests.transports.stub import TEXT, bearer, calling, frames, key_of

PLAIN = "[skills]\nprefetch_tools = []\n"
KEYED = {"idempotency-key": "k1"}
DETACHED = {**TEXT, "detach": True}


def keys(**more: str) -> str:
    roles = {"boss": 'roles = ["admin"]\n'}
    return "".join(
        f'[http.keys.{name}]\nhash = "{hash_of(key_of(name))}"\nact_for = ["*"]\n'
        f"{roles.get(name, '')}{more.get(name, '')}"
        for name in ("ann", "bob", "boss")
    )


@dataclass
class Here:
    """A runtime whose model says nothing until ``go_on`` is set."""

    runtime: Runtime
    client: httpx2.AsyncClient
    upstream: Upstream
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, body: Any = DETACHED, who: str = "ann", **headers: str) -> httpx2.Response:
        return await self.client.post("/v1/ask", json=body, headers={**bearer(who), **headers})

    async def get(self, path: str, who: str = "ann") -> httpx2.Response:
        return await self.client.get(f"/v1/asks{path}", headers=bearer(who))

    async def events(self, ask_id: str, query: str = "") -> list[tuple[str, Any]]:
        return frames((await self.get(f"/{ask_id}/events{query}")).text)

    async def ended(self, ask_id: str) -> Any:
        kept = self.runtime.kept.find(ask_id)
        assert kept is not None
        await kept.finished()
        return (await self.get(f"/{ask_id}")).json()


@asynccontextmanager
async def here(
    folder: Path, config: str = "", texts: Sequence[str] = ("Hello.",)
) -> AsyncIterator[Here]:
    go_on = asyncio.Event()
    async with Upstream([reply_text(text, pace=Pace(gate=go_on)) for text in texts]) as upstream:
        whole = (
            PLAIN
            + chat_profile(upstream.base_url)
            + config
            + (keys() if "http" not in config else "")
        )
        async with (
            opened(folder, whole) as runtime,
            calling(runtime) as client,
            asyncio.timeout(60),
        ):
            yield Here(runtime, client, upstream, go_on)
