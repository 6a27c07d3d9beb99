"""What tests of tools that are called by their names share: a runtime with tools and two principals."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from session_runtime import Runtime
from session_runtime.registry.keyring import hash_of
from tests.support import opened, tool_folder, write_handler
from tests.transports.stub import bearer, calling, key_of

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
RECORDS = """
async def execute(args, context):
    context.resources["ran"].append(args)
    return {"got": args, "user": context.identity.user, "who": context.principal}
"""
WAITS = """
async def execute(args, context):
    context.resources["started"].set()
    await context.resources["go_on"].wait()
    context.resources["ran"].append(args)
    return "done"
"""
PRINCIPALS = "".join(
    f'[http.keys.{name}]\nhash = "{hash_of(key_of(name))}"\nact_for = ["u-*"]\n'
    for name in ("ann", "bob")
)


@dataclass
class Tools:
    """A runtime whose tools can be called by their names, and what ran of them."""

    runtime: Runtime
    client: httpx2.AsyncClient
    resources: dict[str, Any] = field(default_factory=dict)

    @property
    def ran(self) -> list[Any]:
        return list(self.resources["ran"])

    async def invoke(
        self, name: str, body: Mapping[str, Any] | None = None, who: str = "ann", **headers: str
    ) -> httpx2.Response:
        sent = {"arguments": {"n": 1}} if body is None else body
        path, more = f"/v1/tools/{name}/invoke", {**bearer(who), **headers}
        return await self.client.post(path, json=sent, headers=more)


@asynccontextmanager
async def tools(
    folder: Path, invoke: str = 'enabled = true\nallow = ["*"]\n', more: str = ""
) -> AsyncIterator[Tools]:
    for name, options in {
        "a.note": {"runtime": {"aliases": ["remember"]}},
        "a.wipe": {"runtime": {"destructive": True}},
        "a.wait": {"code": WAITS},
        "a.breaks": {"code": "def execute(args, context):\n    raise ValueError('boom')\n"},
    }.items():
        write_handler(folder / "tools", name, **{"parameters": NUMBER, "code": RECORDS, **options})
    resources = {"ran": [], "started": asyncio.Event(), "go_on": asyncio.Event()}
    config = f"{tool_folder(folder)}bundled = false\n[http.invoke]\n{invoke}{PRINCIPALS}{more}"
    async with (
        opened(folder, config, resources=resources) as runtime,
        calling(runtime) as client,
        asyncio.timeout(60),
    ):
        yield Tools(runtime, client, resources)
