"""A daemon with a secret of its own in every place where one can be, asked so that each is used."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2

from session_runtime.registry.keyring import hash_of
from session_runtime.testing.conversation import Request, messages_of, question_of
from session_runtime.testing.mcp_servers.raw import raw_server
from session_runtime.testing.mcp_servers.script import Script
from session_runtime.testing.replies import Reply, reply_calls, reply_error, reply_text
from tests.support import write_handler
from tests.transports.stub import bearer, key_of

PLACES: Final = (
    *("model_key", "model_header", "model_variable", "model_reference", "model_file"),
    *("server_header", "server_query", "server_variable", "server_argument", "server_stderr"),
    *("callback_query", "mqtt_password", "signer", "collector_header", "key_in_url", "wrong_key"),
    *("argument", "result", "tool_error", "exception", "logged", "said_in_text", "metadata"),
    *("unread_value", "unknown_name", "short_secret", "userinfo", "unended", "edited"),
    *("rotated", "rejected"),
)


def planted(place: str) -> str:
    """The secret of one place: random to look at, and found nowhere else."""
    return f"Zq9{hashlib.sha256(place.encode()).hexdigest()[:29]}"


SECRETS: Mapping[str, str] = {
    **{place: planted(place) for place in PLACES},
    "callback": "whsec_" + base64.b64encode(hashlib.sha256(b"callback").digest()).decode(),
    "user_key": key_of("bot"),
    "boss_key": key_of("boss"),
}
HANDLERS: Mapping[str, str] = {
    "secrets.take": "def execute(args, context):\n    return 'taken'\n",
    "secrets.give": f"def execute(args, context):\n    return {{'api_key': {SECRETS['result']!r}}}\n",
    "secrets.refuse": (
        "from session_runtime.handler import ToolError\n\ndef execute(args, context):\n"
        f"    raise ToolError('cannot log in with password={SECRETS['tool_error']}')\n"
    ),
    "secrets.break": (
        "def execute(args, context):\n"
        f"    raise RuntimeError('401 for token: {SECRETS['exception']}')\n"
    ),
    "secrets.log": (
        "import logging\n\ndef execute(args, context):\n"
        f"    logging.getLogger('secrets').error('password=%s', {SECRETS['logged']!r})\n"
        "    return 'logged'\n"
    ),
}
CONFIG = """
[runtime]
secret_sources = ["env:*_API_KEY", "file:{folder}"]
watch = "off"

[skills]
prefetch_tools = []

[handlers]
paths = ["tools"]

[trace]
content = true

[otel]
enabled = true
endpoint = "{collector}"
content = true
headers = {{ x-token = "{collector_header}" }}

[models.main]
wire = "chat"
base_url = "{upstream}"
model = "key"
max_retries = 0
api_key = "{model_key}"
headers = {{ x-team = "{model_header}" }}

[models.variable]
wire = "chat"
base_url = "{upstream}"
model = "variable"

[models.reference]
wire = "chat"
base_url = "{upstream}"
model = "reference"
api_key = "env:TEAM_API_KEY"

[models.file]
wire = "chat"
base_url = "{upstream}"
model = "file"
api_key = "file:{folder}/key"

[mcp]
wait_s = 2.0

[mcp.servers.web]
url = "http://127.0.0.1:{echo}/mcp?token={server_query}"
headers = {{ authorization = "Bearer {server_header}" }}

[mcp.servers.shop]
command = {program}
args = {args}
env = {{ SHOP_TOKEN = "{server_variable}" }}

[callbacks.done]
url = "http://127.0.0.1:{echo}/done?token={callback_query}"
secret = "{callback}"
tries = 1

[mqtt]
enabled = true
url = "mqtt://127.0.0.1:{nobody}"
username = "bot"
password = "{mqtt_password}"

[mqtt.signers.bot]
secret = "{signer}"

[http.keys.boss]
hash = "{boss}"
roles = ["admin"]
act_for = ["*"]

[http.keys.bot]
hash = "{bot}"
act_for = ["*"]
"""
BAD_FILES: Mapping[str, str] = {
    "unread_value": '[models.main]\napi_key = ["{}"]\n',
    "unknown_name": '[models.main]\napi_kye = "{}"\n',
    "short_secret": '[callbacks.done]\nurl = "http://127.0.0.1/"\nsecret = "{}"\n',
    "userinfo": '[models.main]\nbase_url = "http://user:{}@127.0.0.1/v1"\n',
    "unended": '[models.main]\napi_key = "{}\n',
}
"""Files that are refused, each with a secret in what is wrong."""


def reply_to(request: Request) -> Reply:
    """Call every tool at once, and say that it is done; or repeat the key that was sent, as services do."""
    if question_of(request).startswith("denied"):
        sent = SECRETS[f"model_{request['model']}"]
        return reply_error(401, f"Incorrect API key provided: {sent}")
    if any(message["role"] == "tool" for message in messages_of(request)):
        return reply_text("It is done.")
    wanted = [(name.replace(".", "__"), {"password": SECRETS["argument"]}) for name in HANDLERS]
    return reply_calls(*wanted, ("shop__echo", {"text": f"token={SECRETS['argument']}"}))


@dataclass
class Echo:
    """A service that refuses everything and repeats what it was sent, as some do."""

    port: int = 0
    asked: list[bytes] = field(default_factory=list)
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        async with self.came:
            self.asked.append(head)
            self.came.notify_all()
        size = (
            f"HTTP/1.1 401 Unauthorized\r\ncontent-length: {len(head)}\r\nconnection: close\r\n\r\n"
        )
        writer.write(size.encode() + head)
        await writer.drain()
        writer.close()

    async def got(self, path: bytes) -> None:
        async with self.came:
            await self.came.wait_for(lambda: any(path in head for head in self.asked))


@asynccontextmanager
async def echo() -> AsyncIterator[Echo]:
    service = Echo()
    async with await asyncio.start_server(service, "127.0.0.1", 0) as server:
        service.port = server.sockets[0].getsockname()[1]
        yield service


def site(folder: Path, collector: str, upstream: str, echo_port: int) -> Path:
    """The configuration with all secrets that stand in it."""
    secret = {"type": "object", "properties": {"password": {"type": "string"}}}
    for name, code in HANDLERS.items():
        write_handler(folder / "tools", name, parameters=secret, code=code)
    (folder / "key").write_text(SECRETS["model_file"])
    stderr = f"login with password={SECRETS['server_stderr']}\nhave {SECRETS['server_variable']}\n"
    program, args = raw_server(Script(tools=("echo",), stderr=stderr))
    given = {
        **SECRETS,
        **{name: hash_of(key_of(name)) for name in ("boss", "bot")},
        "folder": folder,
        "collector": collector,
        "upstream": upstream,
        "echo": echo_port,
        "nobody": 9,
        "program": json.dumps(program),
        "args": json.dumps([*args, "--password", SECRETS["server_argument"]]),
    }
    path = folder / "config.toml"
    path.write_text(CONFIG.format(**given), "utf-8")
    return path


def variables() -> dict[str, str]:
    """The environment with the secrets that stand there."""
    return {
        "SESSION_RUNTIME__MODELS__VARIABLE__API_KEY": SECRETS["model_variable"],
        "TEAM_API_KEY": SECRETS["model_reference"],
    }


async def use_all(client: httpx2.AsyncClient, service: Echo) -> tuple[str, ...]:
    """Ask with every model, send wrong keys, try bad files, and edit with a secret; gives the ids of asks."""
    ids: list[str] = []
    for model in ("main", "variable", "reference", "file"):
        for text in ("denied", f"my password is {SECRETS['said_in_text']}"):
            body: dict[str, Any] = {
                "text": text,
                "model": model,
                "metadata": {"token": SECRETS["metadata"]},
                "detach": True,
                "callback": "done",
            }
            accepted = await client.post("/v1/ask", json=body, headers=bearer("bot"))
            assert accepted.status_code == 202, accepted.text
            ids.append(accepted.json()["ask_id"])
            await client.get(f"/v1/asks/{ids[-1]}/events", headers=bearer("bot"))
    await service.got(b"/done")
    refused = [
        await client.get("/v1/status", params={"api_key": SECRETS["key_in_url"]}),
        await client.get("/v1/status", headers={"authorization": f"Bearer {SECRETS['wrong_key']}"}),
    ]
    assert [each.status_code for each in refused] == [400, 401]
    return tuple(ids)


async def bad_files(client: httpx2.AsyncClient) -> dict[str, str]:
    """What is said of files that are wrong where a secret stands."""
    said: dict[str, str] = {}
    for place, text in BAD_FILES.items():
        answer = await client.post(
            "/v1/config/validate",
            content=text.format(SECRETS[place]),
            headers=bearer("boss") | {"content-type": "text/plain"},
        )
        said[f"validate {place}"] = answer.text
        assert '"rejected"' in answer.text, answer.text
    edit = {"models.main.api_key": SECRETS["edited"]}
    headers = bearer("boss") | {"if-match": "*"}
    answer = await client.patch("/v1/config", json=edit, headers=headers)
    said["edit"] = answer.text
    return said


async def edit_file(client: httpx2.AsyncClient, config: Path) -> None:
    """Change a secret in the file, and spoil the file meanwhile beside another one."""
    before = await asyncio.to_thread(config.read_text, "utf-8")
    good = before.replace(SECRETS["model_key"], SECRETS["rotated"]) + "\n[ask]\nmax_steps = 7\n"
    bad = f"{good}\n[models.bad]\napi_key = {SECRETS['rejected']}\n"
    for text, verdict in ((bad, "rejected"), (good, "applied")):
        await asyncio.to_thread(config.write_text, text, "utf-8")
        answer = await client.post("/v1/config/reload", headers=bearer("boss"))
        assert answer.json()["verdict"] == verdict, answer.text
