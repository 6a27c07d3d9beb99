"""A runtime with a configuration file, and clients of both ways in: the network and the control socket."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs

from session_runtime import Runtime
from session_runtime.transports.http.guard import ControlGate
from session_runtime.transports.http.openapi import OPENAPI
from tests.transports.stub import calling

STEPS = "# kept\n[ask]\nmax_steps = 9  # and this\n"


@dataclass
class Here:
    """A runtime with a file, and clients of both ways in."""

    file: Path
    runtime: Runtime
    client: httpx2.AsyncClient
    control: httpx2.AsyncClient

    @property
    def max_steps(self) -> int:
        return self.runtime.generation.settings.ask.max_steps

    async def tag(self) -> str:
        return str((await self.client.get("/v1/config")).headers["etag"])

    async def patch(self, values: object, tag: str | None = None) -> httpx2.Response:
        headers = {"if-match": tag or await self.tag()}
        return await self.client.patch("/v1/config", json=values, headers=headers)


@asynccontextmanager
async def here(
    folder: Path, text: str = STEPS, env: Mapping[str, str] | None = None
) -> AsyncIterator[Here]:
    file = folder / "config.toml"
    file.write_text(text, "utf-8")
    off = {"trace.enabled": False}
    async with (
        Runtime.open(file, env=env or {}, explicit=off, watch=False) as runtime,
        calling(runtime) as client,
        calling(runtime, gate=ControlGate()) as control,
    ):
        yield Here(file, runtime, client, control)


def code(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def fits(name: str, data: Any) -> list[str]:
    root = {"$ref": f"#/components/schemas/{name}", "components": OPENAPI["components"]}
    return [error.message for error in jsonschema_rs.validator_for(root).iter_errors(data)]
