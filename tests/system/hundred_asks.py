"""A hundred asks of many kinds from several principals to a daemon, and what each of them told its caller."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2

from session_runtime.registry.keyring import hash_of
from session_runtime.testing.conversation import Request, messages_of, question_of
from session_runtime.testing.replies import (
    Call,
    ChatReply,
    Reply,
    reply_calls,
    reply_error,
    reply_text,
)
from session_runtime.testing.upstream import Upstream
from tests.support import chat_profile, write_agent, write_handler
from tests.system.test_daemon import Daemon, daemon
from tests.transports.stub import EVENTS, bearer, key_of

WAITS = "import asyncio\n\nasync def execute(args, context):\n    await asyncio.Event().wait()\n"
FAILS = "def execute(args, context):\n    raise ValueError('the station is gone')\n"
CONFIG = """
[ask]
max_steps = 4
max_total_tokens = 50_000

[runtime]
max_concurrent_asks = 200

[skills]
tool_search_enabled = true
prefetch_tools = ["weather.now"]

[access.rules.visitors]
roles = ["visitor"]
deny = ["orders.*"]

[http.invoke]
enabled = true
allow = ["orders.find"]

[trace]
max_bytes = 65536
keep = 50

[http.keys.boss]
hash = "{boss}"
roles = ["admin"]
act_for = ["*"]

[http.keys.shop]
hash = "{shop}"
act_for = ["*"]

[http.keys.site]
hash = "{site}"
act_for = ["*"]

[http.keys.slow]
hash = "{slow}"
asks_per_minute = 2
act_for = ["*"]
"""
PRINCIPALS = ("shop", "site", "boss")
USAGE = {"prompt_tokens": 120, "completion_tokens": 7, "total_tokens": 127}
DEAR = {"prompt_tokens": 60_000, "completion_tokens": 9, "total_tokens": 60_009}
NO_MODEL = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens", "model_calls"), 0)
KINDS: Mapping[str, int] = {
    **{"answered": 18, "plain": 12, "missed": 6, "unknown": 6, "early": 6, "failing": 8},
    **{"wrong": 4, "agent": 4, "steps": 4, "dear": 4, "broken": 5, "late": 3, "wiping": 3},
    **{"cancelled": 3, "waits": 2, "leaves": 2, "invoked": 4, "refused": 4, "completed": 2},
}
"""How many asks of each kind: a hundred."""


def search(query: str) -> ChatReply:
    return ChatReply(calls=(Call("tool_search", json.dumps({"query": query}), "c0"),))


def loads(name: str, *, inside: str = "") -> tuple[Reply, ...]:
    """Search for a tool, and call it in the next turn."""
    arguments = {"task": inside} if inside else {}
    return search(f"select:{name}"), reply_calls((name.replace(".", "__"), arguments))


FIND = "orders__find"
SAYS: Mapping[str, tuple[Reply, ...]] = {
    "answered": (search("select:orders.find"), reply_calls((FIND, {"number": 7}), (FIND, {}))),
    "missed": (search("zzzz qqqq"),),
    "unknown": (reply_calls(("weather__never", {}), ("weather__nowhere", {})),),
    "early": (reply_calls(("tool_search", {"query": "select:orders.find"}), (FIND, {})),),
    "wrong": (search("select:orders.find"), reply_calls((FIND, {"number": "seven"}))),
    "failing": loads("weather.fail"),
    "agent": loads("helper", inside="plain"),
    "wiping": loads("orders.wipe"),
    **dict.fromkeys(("late", "cancelled", "waits", "leaves"), loads("weather.hang")),
    "steps": tuple(search(f"thing {turn}") for turn in range(4)),
    "dear": (search("thing"), replace(search("plant"), usage=DEAR)),
    "broken": (reply_error(400, "the model is out of order"),),
}
"""What the model says in the turns of an ask of a kind, before it says that it is done."""


def reply_to(request: Request) -> Reply:
    """What the model says: the kind is the first word of the question."""
    turn = sum(each["role"] == "assistant" for each in messages_of(request))
    says = SAYS.get(question_of(request).split()[0], ())
    return says[turn] if turn < len(says) else reply_text("It is done.", usage=USAGE)


def site(folder: Path, base_url: str) -> Path:
    """A configuration with four principals, tools, a sub-agent and an upstream."""
    number = {"type": "object", "properties": {"number": {"type": "integer"}}}
    tools = folder / "tools"
    write_handler(tools, "weather.now", description="Tells the weather.")
    write_handler(tools, "weather.fail", description="Fails.", code=FAILS)
    write_handler(tools, "weather.hang", description="Waits.", code=WAITS)
    write_handler(tools, "orders.find", description="Finds an order.", parameters=number)
    write_handler(tools, "orders.wipe", description="Wipes.", runtime={"destructive": True})
    write_agent(tools, "helper", settings="tools = []\n")
    for at in range(30):
        write_handler(tools, f"plain.tool{at}", description=f"Measures thing {at} of a plant.")
    hashes = {name: hash_of(key_of(name)) for name in (*PRINCIPALS, "slow")}
    path = folder / "config.toml"
    text = CONFIG.format(**hashes) + '[handlers]\npaths = ["tools"]\n' + chat_profile(base_url)
    path.write_text(text, "utf-8")
    return path


@dataclass
class Told:
    """What callers were told: results by the id of their ask, and events; those who left know nothing."""

    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    left: int = 0

    def count(self, name: str) -> int:
        """The sum of one number over all results."""
        return sum(result[name] for result in self.results.values())

    def add(self, result: dict[str, Any], events: list[dict[str, Any]] | None = None) -> None:
        assert result["ask_id"] not in self.results
        self.results[result["ask_id"]] = {"steps": 0, "usage": NO_MODEL} | result
        self.events += events or []


@dataclass(frozen=True)
class Caller:
    """One who asks; all that it is told goes into ``told``."""

    client: httpx2.AsyncClient
    told: Told

    async def ask(self, kind: str, number: int) -> None:
        """An ask of a kind, in the way of its kind."""
        match kind:
            case "cancelled":
                await self.cancelled(kind, number)
            case "waits":
                await self.waiting(number)
            case "leaves":
                await self.leaving(number)
            case "invoked":
                await self.stream(
                    "/v1/tools/orders.find/invoke",
                    {"arguments": {"number": 1}, "identity": {"user": "u", "roles": ["guest"]}},
                    "shop",
                )
            case "completed":
                await self.completed(number)
            case _:
                name = "slow" if kind == "refused" else PRINCIPALS[number % len(PRINCIPALS)]
                more = {"deadline_s": 3} if kind == "late" else {}
                await self.stream("/v1/ask", asking(kind, number) | more, name)

    async def stream(self, path: str, body: Mapping[str, Any], name: str) -> None:
        response = await self.client.post(path, json=body, headers=bearer(name) | EVENTS)
        if response.status_code != 200:
            self.told.refused.append(response.json()["error"]["code"])
            return
        events = list(events_of(response.text))
        self.told.add(events[-1]["result"], events)

    async def completed(self, number: int) -> None:
        body = {"messages": [{"role": "user", "content": f"completed {number}"}]}
        response = await self.client.post("/v1/chat/completions", json=body, headers=bearer("boss"))
        told = response.json()
        used = [told["usage"][f"{kind}_tokens"] for kind in ("prompt", "completion", "total")]
        result = told["session_runtime"]
        usage = dict(zip(NO_MODEL, (*used, result["steps"]), strict=True))
        self.told.add(result | {"usage": usage})

    async def cancelled(self, kind: str, number: int, **more: str) -> None:
        """An ask that an operator ends when its tool runs."""
        ask_id = await self.detached(kind, number, **more)
        async for event in self.followed(ask_id):
            self.told.events.append(event)
            if event["type"] == "tool.started" and event["name"] == "weather.hang":
                await self.end(ask_id)
            if event["type"] == "ask.finished":
                self.told.add(event["result"])

    async def waiting(self, number: int) -> None:
        """An ask that is ended before its turn comes, as one of its conversation runs."""
        talk = f"talk {number}"
        first = await self.detached("waits", number, conversation=talk)
        async for event in self.followed(first):
            self.told.events.append(event)
            if event["type"] == "tool.started" and event["name"] == "weather.hang":
                second = await self.detached("plain", number, conversation=talk)
                await self.end(second)
                self.told.add([each async for each in self.followed(second)][-1]["result"])
                await self.end(first)
            if event["type"] == "ask.finished":
                self.told.add(event["result"])

    async def leaving(self, number: int) -> None:
        """An ask whose client goes away when its tool runs."""
        request = self.client.stream(
            "POST", "/v1/ask", json=asking("leaves", number), headers=bearer("shop") | EVENTS
        )
        async with request as response:
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    self.told.events.append(event)
                    if event["type"] == "tool.started" and event["name"] == "weather.hang":
                        break
        self.told.left += 1

    async def detached(self, kind: str, number: int, **more: str) -> str:
        body = asking(kind, number) | more | {"detach": True}
        response = await self.client.post("/v1/ask", json=body, headers=bearer("boss"))
        assert response.status_code == 202, response.text
        return str(response.json()["ask_id"])

    async def end(self, ask_id: str) -> None:
        response = await self.client.delete(f"/v1/asks/{ask_id}", headers=bearer("boss"))
        assert response.json()["cancelled"]

    async def followed(self, ask_id: str) -> AsyncIterator[dict[str, Any]]:
        path = f"/v1/asks/{ask_id}/events"
        async with self.client.stream("GET", path, headers=bearer("boss")) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    async def get(self, path: str) -> Any:
        """What an administrator is answered."""
        response = await self.client.get(path, headers=bearer("boss"))
        assert response.status_code == 200, response.text
        return response.json()

    async def metrics(self) -> dict[str, float]:
        """All numbers for a monitoring system, without what stands before each name."""
        text = (await self.client.get("/metrics", headers=bearer("boss"))).text
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name.removeprefix("session_runtime_"): float(value) for name, _, value in lines}


def asking(kind: str, number: int) -> dict[str, Any]:
    roles = ["visitor"] if number % 3 == 1 else ["guest"]
    return {"text": f"{kind} {number}", "identity": {"user": f"u{number % 7}", "roles": roles}}


def events_of(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


@dataclass(frozen=True)
class Asked:
    """A daemon that was asked a hundred times; all asks have ended."""

    running: Daemon
    caller: Caller
    folder: Path

    @property
    def told(self) -> Told:
        return self.caller.told


@asynccontextmanager
async def a_hundred(folder: Path) -> AsyncIterator[Asked]:
    """Ask a daemon of its own, wait for the ends of all asks, and look at it."""
    async with (
        asyncio.timeout(120),
        Upstream(reply_to, keep=False) as upstream,
        daemon(site(folder, upstream.base_url)) as running,
        httpx2.AsyncClient(trust_env=False, timeout=60, base_url=running.url) as client,
    ):
        caller = Caller(client, Told())
        kinds = [kind for kind, times in KINDS.items() for _ in range(times)]
        await asyncio.gather(*(caller.ask(kind, at) for at, kind in enumerate(kinds)))
        while (await caller.get("/v1/asks"))["asks"]:
            pass  # those whose clients left are ending
        yield Asked(running, caller, folder)
