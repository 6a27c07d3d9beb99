"""What the owner of a key may do, by every way in, with everything it may state about others (NET-2)."""

import asyncio
import itertools
import json
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.toolbox.notes import FILE as NOTES
from session_runtime.types import Principal, TurnStarted
from tests.support import ask, calls, opened, says, scripted, tool_folder, write_handler
from tests.system.test_daemon import daemon, working_config
from tests.transports.stub import EVENTS, bearer, calling, frames, key_of, keyring_of

NOBODY = Identity()
TOOLS = ("admin_reset", "files_read", "mail_send", "shop_buy", "shop_look")
RULES = """
[skills]
prefetch_tools = []

[access.rules.guests]
roles = ["guest"]
deny = ["mail_*"]

[access.rules.lobby]
channels = ["lobby"]
deny = ["shop_buy"]

[access.rules.eve]
users = ["eve"]
deny = ["files_*"]
"""
STRICT = """
[access]
default = "deny"

[access.rules.staff]
roles = ["staff"]
allow = ["*"]

[access.rules.bots]
users = ["bot", "ann"]
allow = ["files_*", "shop_*"]
"""
KEYS: dict[str, Mapping[str, Any]] = {
    "bot": {"act_for": ("*",)},
    "desk": {"act_for": ("ann", "eve"), "roles": ("staff", "admin"), "channel": "desk"},
    "eve": {"channel": "lobby", "roles": ("guest",)},
}
IDENTITIES = [
    Identity(user, roles, channel)
    for user, roles, channel in itertools.product(
        (None, "ann", "eve"),
        (None, frozenset(), frozenset({"guest"}), frozenset({"staff", "admin"})),
        (None, "lobby", "desk"),
    )
]


def keys_toml() -> str:
    """[http.keys] as the keyring of ``KEYS`` has it."""
    keyring = keyring_of(**KEYS)
    lines = []
    for name, (digest, _) in zip(KEYS, keyring.owners, strict=True):
        lines += [f"[http.keys.{name}]", f'hash = "sha256:{digest.hex()}"']
        lines += [f"{key} = {json.dumps(value)}" for key, value in KEYS[name].items()]
    return "\n".join(lines)


@asynccontextmanager
async def running(folder: Path, rules: str) -> AsyncIterator[tuple[Runtime, httpx2.AsyncClient]]:
    for name in TOOLS:
        roles = {"requires": ["admin"]} if name == "admin_reset" else None
        write_handler(folder / "tools", name, runtime=roles)
    model = scripted(folder, says("ok"))
    text = f"{model}{tool_folder(folder)}bundled = false\n{rules}\n{keys_toml()}\n"
    async with opened(folder, text) as runtime, calling(runtime) as client:
        yield runtime, client


def as_json(identity: Identity) -> dict[str, Any]:
    fields = {
        "user": identity.user,
        "roles": None if identity.roles is None else sorted(identity.roles),
        "channel": identity.channel,
    }
    return {name: value for name, value in fields.items() if value is not None}


async def asked(client: httpx2.AsyncClient, name: str, identity: Identity) -> set[str] | str:
    """The tools that the model was sent, or the code of the refusal."""
    body = {"text": "hi", "identity": as_json(identity)}
    response = await client.post("/v1/ask", json=body, headers=bearer(name) | EVENTS)
    if response.status_code != 200:
        return str(response.json()["error"]["code"])
    [exposed] = [
        data["exposed"] for event, data in frames(response.text) if event == "turn.started"
    ]
    return set(exposed)


async def listed(client: httpx2.AsyncClient, name: str, identity: Identity) -> set[str] | str:
    """The tools that are listed for an identity, or the code of the refusal."""
    fields = as_json(identity)
    query = [("role", role) for role in fields.pop("roles", ())] + list(fields.items())
    response = await client.get("/v1/tools", params=query, headers=bearer(name))
    if response.status_code != 200:
        return str(response.json()["error"]["code"])
    return {tool["name"] for tool in response.json()["tools"]}


async def in_process(runtime: Runtime, owner: Principal, identity: Identity) -> set[str] | str:
    asked = await ask(runtime, AskRequest("hi", identity=identity, principal=owner))
    if asked.result.error is not None:
        return asked.result.error.code
    return {name for turn in asked.of(TurnStarted) for name in turn.exposed}


def by_itself(runtime: Runtime, identity: Identity) -> set[str]:
    mask = runtime.generation.policy.mask(identity)
    return {tool.name for tool in runtime.generation.permitted.get(mask).tools}


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("rules", [RULES, STRICT])
@pytest.mark.parametrize("name", KEYS)
async def test_by_every_door_a_key_gives_what_its_owner_and_the_stated_identity_both_may(
    tmp_path: Path, name: str, rules: str
) -> None:
    async with running(tmp_path, rules) as (runtime, client):
        owner = runtime.keys().owner(key_of(name).encode())
        assert owner is not None
        alone = await asked(client, name, NOBODY)
        assert alone == by_itself(runtime, owner.identity or NOBODY)
        for stated in IDENTITIES[1:]:
            found = await asked(client, name, stated)
            assert found == await in_process(runtime, owner, stated)
            if isinstance(found, str):
                assert found == "auth.act_for"
            else:
                assert found == alone & by_itself(runtime, stated)
            if not stated.roles == frozenset():  # a query cannot say that there are none
                assert found == await listed(client, name, stated)


@pytest.mark.requirement("NET-2b")
async def test_only_whom_act_for_names_is_acted_for(tmp_path: Path) -> None:
    async with running(tmp_path, RULES) as (_, client):
        answers = {
            (name, stated.user, stated.roles is None): await asked(client, name, stated)
            for name in KEYS
            for stated in IDENTITIES[1:]
        }
    refused = {key for key, told in answers.items() if told == "auth.act_for"}
    assert {(name, user) for name, user, _ in refused} == {
        ("desk", None),
        ("eve", None),
        ("eve", "ann"),
        ("eve", "eve"),
    }


@pytest.mark.requirement("NET-2b")
async def test_statistics_and_places_of_tools_are_for_admins(tmp_path: Path) -> None:
    async with running(tmp_path, RULES) as (_, client):
        tools = {
            name: (await client.get("/v1/tools?user=ann", headers=bearer(name))).json()["tools"]
            for name in ("bot", "desk")
        }
    more = tools["desk"][0].keys() - tools["bot"][0].keys()
    assert {"place", "statistics"} <= more


@pytest.mark.requirement("NET-2c")
async def test_notes_of_a_user_are_apart_for_every_principal(tmp_path: Path) -> None:
    add = calls(("notes.add", {"text": "mine"})), calls(("notes.list", {})), says("done")
    ann, itself = Identity("ann"), Identity()
    owners = [
        AskRequest("Keep it.", identity=identity, principal=replace(OWNER, name=name))
        for name in ("bot", "desk")
        for identity in (ann, Identity("bot"), itself)
    ]
    async with opened(tmp_path, scripted(tmp_path, *add)) as runtime:
        for request in (*owners, AskRequest("Keep it.", identity=ann)):
            asked = await ask(runtime, request)
            [_, notes] = [m.content for m in asked.result.new_messages if m.role == "tool"]
            assert [note["text"] for note in json.loads(str(notes))["notes"]] == ["mine"]
    assert (tmp_path / ".session-runtime" / NOTES).exists()


OWNER = Principal("bot", Identity("bot", frozenset()), ("ann", "bot"))
TELLS = """
def execute(args, context):
    who = context.identity
    return {"principal": context.principal, "user": who.user, "roles": sorted(who.roles or ["?"])}
"""


@pytest.mark.requirement("NET-2b")
async def test_a_handler_is_told_whom_the_ask_is_for_and_who_asked(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "who", code=TELLS)
    model = scripted(tmp_path, calls(("who", {})), says("done"))
    async with opened(tmp_path, f"{model}{tool_folder(tmp_path)}") as runtime:
        told = [
            json.loads(str(asked.result.new_messages[2].content))
            for asked in [
                await ask(runtime, AskRequest("?", identity=identity, principal=principal))
                for principal, identity in [
                    (OWNER, Identity("ann", frozenset({"staff"}))),
                    (OWNER, NOBODY),
                    (AskRequest("?").principal, Identity("ann")),
                ]
            ]
        ]
    assert told == [
        {"principal": "bot", "user": "ann", "roles": ["staff"]},
        {"principal": "bot", "user": "bot", "roles": ["?"]},
        {"principal": "local", "user": "ann", "roles": ["?"]},
    ]


@pytest.mark.requirement("NET-2b")
async def test_the_trace_says_who_asked(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(scripted(tmp_path, says("done")), "utf-8")
    async with Runtime.open(path, env={}) as runtime:
        await runtime.ask(AskRequest("hi", identity=Identity("ann"), principal=OWNER))
        await runtime.ask(AskRequest("hi", identity=Identity("eve"), principal=OWNER))
        await runtime.ask(AskRequest("hi"))
    lines = (tmp_path / ".session-runtime" / "trace.jsonl").read_text("utf-8").splitlines()
    assert [
        (record["principal"], record["identity"]["user"], (record["error"] or {}).get("code"))
        for record in map(json.loads, lines)
    ] == [("bot", "ann", None), ("bot", "eve", "auth.act_for"), ("local", None, None)]


async def log_until(process: asyncio.subprocess.Process, word: str) -> str:
    """What the daemon logs up to the first line with ``word`` in it."""
    assert process.stderr is not None
    lines: list[str] = []
    async with asyncio.timeout(20):
        while not lines or word not in lines[-1]:
            line = await process.stderr.readline()
            assert line, "".join(lines)
            lines.append(line.decode())
    return "".join(lines)


@pytest.mark.requirement("NET-2b")
async def test_a_running_daemon_obeys_keys_as_they_come_and_go(tmp_path: Path) -> None:
    config = working_config(tmp_path)
    without = config.read_text("utf-8")

    async def edit(text: str) -> None:
        config.write_text(text, "utf-8")
        running.process.send_signal(signal.SIGHUP)
        await log_until(running.process, "applied")

    async def status(name: str | None) -> int:
        headers = bearer(name) if name else {}
        return (await client.get("/v1/status", headers=headers)).status_code

    async with (
        daemon(config) as running,
        httpx2.AsyncClient(base_url=running.url, trust_env=False, timeout=30) as client,
    ):
        assert "every caller is admin" in await log_until(running.process, "no keys are set")
        assert await status(None) == 200
        await edit(f"{without}\n{keys_toml()}\n")
        assert [await status(name) for name in (None, "bot", "desk")] == [401, 403, 200]
        answer = await client.post("/v1/ask", json={"text": "2 + 2"}, headers=bearer("bot"))
        assert answer.json()["outcome"] == "answered"
        await edit(f"{without}\n{keys_toml()}\n".replace("[http.keys.bot]", "[http.keys.other]"))
        assert [await status(name) for name in (None, "desk")] == [401, 200]
        await edit(without)
        assert [await status(name) for name in (None, "bot", "desk")] == [401, 403, 200]


@pytest.mark.requirement("NET-2b")
async def test_a_daemon_with_keys_does_not_say_that_every_caller_is_admin(tmp_path: Path) -> None:
    async with daemon(working_config(tmp_path, f"\n{keys_toml()}\n")) as running:
        running.process.send_signal(signal.SIGTERM)
        assert "no keys are set" not in await log_until(running.process, "stopped")
