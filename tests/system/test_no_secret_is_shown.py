"""A secret in each place where one can be is in nothing that the daemon and its commands tell."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from session_runtime.testing.upstream import Upstream
from tests.system.planted import (
    SECRETS,
    bad_files,
    echo,
    edit_file,
    reply_to,
    site,
    use_all,
    variables,
)
from tests.system.test_daemon import bare_environment, daemon
from tests.trace.collector import collecting
from tests.transports.stub import bearer

KNOWN_CHARS = 12
"""So much of a secret is enough to know it by; a cut may leave no more."""
PAGES: Mapping[str, str] = {
    "/v1/models": "",
    "/v1/models/{id}": "/v1/models/main",
    "/v1/tools": "/v1/tools?schemas=true",
    "/v1/status": "",
    "/v1/revocations": "",
    "/v1/asks": "",
    "/v1/config": "",
    "/v1/config/explain": "/v1/config/explain?key=models.main.api_key",
    "/v1/config/history": "",
    "/v1/servers/{name}/log": "/v1/servers/shop/log",
    "/v1/search": "/v1/search?query=secrets",
    "/v1/access": "/v1/access?tool=secrets.give",
    "/v1/principals": "",
    "/v1/recent": "/v1/recent?limit=200",
    "/v1/recent/{id}": "/v1/recent/{ask}",
    "/console": "",
    "/console/session": "",
    "/healthz": "",
    "/readyz": "",
    "/metrics": "",
    "/openapi.json": "",
}
"""Every route that is read, and what is read of it where that is another address."""
NOT_READ = {
    "/v1/asks/{id}": "it is told to who asked alone",
    "/v1/asks/{id}/events": "they are told to who asked alone",
    "/v1/tools/waiting/{name}": "no tool waits here",
    "/v1/live": "the same as status, asks and recent",
    "/console/files/{name}": "they are the same for everybody",
}
COMMANDS = (
    *("config show", "config show --json", "config show --daemon", "config history"),
    *("config receipts --json", "config diff 1 2", "config check --json", "config check --diff"),
    *("config explain models", "config explain mcp.servers.shop.args", "config explain callbacks"),
    *("status", "status --json", "doctor", "doctor --json", "keys list", "asks list --json"),
    *("tools list --json", "tools show secrets.take", "tools logs shop", "tools snapshot"),
    *("trace tail --json", "trace show {ask}", "trace show {ask} --json", "audit tail --json"),
    *("audit verify", "replay .session-runtime/trace.jsonl --json"),
)


NEXT = "## "
ONE_BY_ONE = f"""
import sys
from session_runtime.cli import main
for words in sys.argv[2:]:
    print({NEXT!r} + words, flush=True)
    main([*words.split(), "--config", sys.argv[1]])
"""


@dataclass(frozen=True)
class Told:
    """Everything that was told, by where: pages, commands, files, the log, and spans."""

    outputs: dict[str, str]

    def leaks(self) -> list[str]:
        """Each secret that is found, with where."""
        return [
            f"{place} in {name}: {text[max(0, at - 80) : at + 60]!r}"
            for name, text in self.outputs.items()
            for place, secret in SECRETS.items()
            if (at := text.find(secret[:KNOWN_CHARS] if secret.startswith("Zq9") else secret)) >= 0
        ]


async def pages(client: httpx2.AsyncClient, ask: str) -> AsyncIterator[tuple[str, str]]:
    """What an administrator reads."""
    routes = (await client.get("/openapi.json", headers=bearer("boss"))).json()["paths"]
    read = {path for path, methods in routes.items() if "get" in methods}
    assert read == PAGES.keys() | NOT_READ.keys()
    for path, sample in PAGES.items():
        answer = await client.get((sample or path).format(ask=ask), headers=bearer("boss"))
        assert answer.status_code in (200, 503), (path, answer.text)
        yield path, answer.text


async def printed(config: Path, ask: str) -> dict[str, str]:
    """What the commands print on either stream, by their words."""
    wanted = [words.format(ask=ask) for words in COMMANDS]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ONE_BY_ONE, str(config), *wanted),
        cwd=config.parent,
        env=bare_environment() | variables(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode()
    assert "Usage:" not in said, said
    parts = said.split(NEXT)[1:]
    assert [part.partition("\n")[0] for part in parts] == wanted
    return dict(zip(wanted, parts, strict=True))


def files(folder: Path) -> dict[str, str]:
    """What the daemon keeps."""
    found = [each for each in folder.rglob("*") if each.is_file() and not each.is_symlink()]
    return {str(each.relative_to(folder)): each.read_text("utf-8", "replace") for each in found}


@asynccontextmanager
async def told(folder: Path) -> AsyncIterator[Told]:
    outputs: dict[str, str] = {}
    async with echo() as service, Upstream(reply_to, keep=False) as upstream:
        with collecting() as collector:
            config = site(folder, collector.url, upstream.base_url, service.port)
            async with (
                daemon(config, **variables()) as running,
                httpx2.AsyncClient(trust_env=False, timeout=60, base_url=running.url) as client,
            ):
                ask = (await use_all(client, service))[1]
                outputs |= await bad_files(client)
                await edit_file(client, config)
                outputs |= {name: text async for name, text in pages(client, ask)}
                outputs |= await printed(config, ask)
                running.process.terminate()
                _, log = await running.process.communicate()
                outputs["log"] = running.log + log.decode()
            outputs["spans"] = b"\n".join(collector.raw).decode("utf-8", "replace")
    outputs |= files(folder / ".session-runtime")
    yield Told(outputs)


@pytest.mark.requirement("CFG-4a")
@pytest.mark.requirement("OPS-1a")
async def test_no_secret_is_found_in_anything_that_the_daemon_tells(tmp_path: Path) -> None:
    async with asyncio.timeout(180), told(tmp_path) as everything:
        assert everything.leaks() == []
    for place, words in SIGNS.items():
        assert words in everything.outputs[place], place


SIGNS: Mapping[str, str] = {
    "log": "password=***",
    "trace.jsonl": '"arguments":{"password":"***"}',
    "trace tail --json": "Incorrect API key provided: ***",
    "spans": '{"password":"***"}',
    "audit tail --json": '"arguments":{"password":"***"}',
    "tools logs shop": "have ***",
    "config diff 1 2": "max_steps",
    "config show": 'mcp.servers.web.url = "http://127.0.0.1:',
}
"""What stands beside secrets: so it is certain that those were there."""
