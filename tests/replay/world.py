"""A configuration with everything that decides about tools, two hundred asks to it, and their trace."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from session_runtime import AskRequest, Identity, Message, Runtime
from session_runtime.app.runtime import bundled_handlers
from session_runtime.config.load import load
from session_runtime.direct import DirectCall
from session_runtime.generation import Generation, GenerationBuilder
from session_runtime.registry.registry import Registry
from session_runtime.replay import Replayed, replay
from session_runtime.trace.reading import Traces
from session_runtime.types import LOCAL, Principal, ToolCall
from tests.support import ask, calls, says, write_agent, write_handler

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LONG = "def execute(args, context):\n    return 'word ' * 3000\n"
HASH = "sha256:" + "ab" * 32
CONFIG = f"""
[ask]
max_steps = 5
max_tool_calls = 5
max_result_chars = 4000

[handlers]
paths = ["tools"]
enabled = [
  "send_message", "end", "get_current_time", "notes.add", "results.read", "weather.*", "payroll.*",
  "calendar.*", "report.*", "files.wipe", "shop.*", "clerk",
]

[skills]
tool_search_enabled = true
tool_search_max_results = 2
tool_search_max_calls = 3
tool_search_sticky_turns = 1
tool_search_always_loaded = ["send_message", "end", "notes.add"]
prefetch_tools = ["get_current_time", "calendar.today"]

[access.rules.interns]
roles = ["intern"]
deny = ["payroll.*"]

[http.keys.bot]
hash = "{HASH}"
roles = ["staff"]
act_for = ["ann", "bob"]

[models.main]
wire = "scripted"
script = "script.json"
max_retries = 0

[models.other]
wire = "scripted"
script = "script.json"
max_retries = 0

[models.shaky]
wire = "scripted"
script = "shaky.json"
max_retries = 0
fallback = "main"

[trace]
path = "trace.jsonl"
content = true

[runtime]
state_dir = "state"
"""
FIND = ("tool_search", {"query": "weather forecast"})
SCENES = {
    "plain": [says("hello")],
    "then": [says("agreed"), says("done")],
    "weather": [calls(FIND), calls(("weather.forecast", {"city": "Bern"})), says("sunny")],
    "payroll": [
        calls(("tool_search", {"query": "select:payroll.list", "max_results": 1})),
        calls(("payroll.list", {})),
        says("paid"),
    ],
    "hasty": [calls(("weather.forecast", {"city": "Bern"})), says("sorry")],
    "lost": [calls(("tool_search", {"query": f"zzz{n} qqq"})) for n in range(4)] + [says("none")],
    "again": [calls(("notes.add", {"text": "x"})) for _ in range(4)] + [says("done")],
    "many": [calls(*[("notes.add", {"text": str(n)}) for n in range(7)]), says("done")],
    "endless": [calls(("send_message", {"text": str(n % 2)})) for n in range(9)],
    "over": [calls(("send_message", {"text": "bye"})), calls(("end", {}))],
    "both": [calls(("end", {}), ("send_message", {"text": "bye"})), calls(("end", {}))],
    "wipe": [
        calls(("tool_search", {"query": "select:files.wipe"})),
        calls(("files.wipe", {"city": "x"})),
        says("wiped"),
    ],
    "wrong": [
        calls(("tool_search", {"query": "select:weather.forecast,weather.past,nope"})),
        calls(("weather.forecast", {"town": 1}), ("weather.past", "{broken")),
        says("sorry"),
    ],
    "long": [calls(("tool_search", {"query": "report"})), calls(("report.write", {})), says("ok")],
    "agent": [calls(("tool_search", {"query": "select:clerk"})), calls(("clerk", {})), says("ok")],
    "delegate": [
        calls(("tool_search", {"query": "select:clerk"})),
        calls(("clerk", {"task": "count"})),
        calls(("notes.add", {"text": "y"})),
        says("ok"),
    ],
    "count": [calls(("shop.item_1", {}), ("shop.item_2", {})), says("two")],
    "fails": [{"error": {"code": "model.broken"}}],
    "sticky": [calls(("weather.past", {"city": "Bern"})), says("rain")],
    "earn": [calls(("tool_search", {"query": "people earn"})), says("they earn")],
    "secret": [calls(("tool_search", {"query": "weather sk-abcdefgh12345678"})), says("no")],
    "nobody": [calls(("nope.tool", {})) for _ in range(4)] + [says("no")],
    "eager": [calls(("weather.past", {"city": "Bern"})) for _ in range(2)] + [says("rain")],
}
MORE = ("delegate", "count")
ANN = Identity("ann", frozenset({"staff"}), "web")
PEOPLE = (
    Identity(),
    ANN,
    Identity("bob", frozenset({"intern"})),
    Identity("cy", frozenset(), "phone", "guests"),
)


def build(folder: Path) -> None:
    """Write the tools and the scripts."""
    tools = folder / "tools"
    for name in ("weather.forecast", "weather.past"):
        write_handler(tools, name, description=f"Tells the {name} of a city.", parameters=CITY)
    write_handler(tools, "payroll.list", description="Lists what people earn.")
    write_handler(tools, "calendar.today", description="Tells the appointments of today.")
    write_handler(tools, "report.write", description="Writes a report.", code=LONG)
    destructive = {"destructive": True}
    write_handler(tools, "files.wipe", description="Deletes all files.", runtime=destructive)
    for number in range(12):
        write_handler(tools, f"shop.item_{number}", description=f"Sells the item {number}.")
    write_agent(tools, "clerk", settings='tools = ["shop.*"]\n', prompt="You are a clerk: plain.")
    scenes = [{"match": match, "replies": replies} for match, replies in SCENES.items()]
    script = {"scenes": scenes, "replies": [says("as you like")]}
    (folder / "script.json").write_text(json.dumps(script))
    failing = {"replies": [{"error": {"code": "model.down", "transient": True}}]}
    (folder / "shaky.json").write_text(json.dumps(failing))


def requests() -> Iterator[AskRequest]:
    """Fifty requests: every scene for everybody whom it concerns, and all that happens at the door."""
    for scene in ("plain", "weather", "payroll", "hasty", "wipe", "long"):
        yield from (AskRequest(scene, identity=who) for who in PEOPLE)
    alone = [
        scene for scene in SCENES if scene not in ("plain", "then", "payroll", "sticky", *MORE)
    ]
    yield from (AskRequest(scene, identity=ANN) for scene in alone)
    call = ToolCall("c1", "weather.past", '{"city": "Bern"}')
    history = [
        Message("user", "rain?"),
        Message("assistant", None, (call,)),
        Message("tool", "dry", tool_call_id="c1"),
    ]
    yield AskRequest("sticky", identity=ANN, history=history)
    yield AskRequest("plain", model="other")
    yield AskRequest("weather", model="shaky")
    yield AskRequest("plain", model="nope")
    yield AskRequest(call=DirectCall("weather.forecast", {"city": "Bern"}))
    yield AskRequest(call=DirectCall("weather.forecast", {}))
    yield AskRequest(call=DirectCall("files.wipe", {}))


def of_bot(bot: Principal) -> Iterator[AskRequest]:
    """What a caller with a key asks, within its rights and beyond."""
    yield AskRequest("weather", principal=bot)
    yield AskRequest("payroll", principal=bot, identity=ANN)
    yield AskRequest("plain", principal=bot, identity=Identity("mallory"))


def record(folder: Path, rounds: int = 4, text: str = CONFIG) -> Path:
    """Ask everything ``rounds`` times, some with consent, and give the trace."""
    build(folder)
    (folder / "config.toml").write_text(text)
    asyncio.run(_record(folder, rounds))
    return folder / "trace.jsonl"


async def _record(folder: Path, rounds: int) -> None:
    async with Runtime.open(folder / "config.toml", env={}, watch=False) as runtime:
        bot = runtime.keys().named("bot")
        assert bot is not None
        for _ in range(rounds):
            for request in (*requests(), *of_bot(bot)):
                await ask(runtime, request)
            await _confirm(runtime)


async def _confirm(runtime: Runtime) -> None:
    """Once yes, once no."""
    for field in ("confirmations", "declined"):
        waiting = await ask(runtime, AskRequest("wipe", principal=LOCAL))
        tokens: Any = {field: [call.token for call in waiting.result.pending]}
        await ask(runtime, replace(AskRequest("then"), **tokens))


def prepared(folder: Path, text: str = CONFIG) -> Generation:
    """Prepare the generation of a configuration text, as a trial."""
    path = folder / "other.toml"
    path.write_text(text)
    return asyncio.run(_prepared(path))


async def _prepared(path: Path) -> Generation:
    snapshot = load(path, named=True, env={})
    trial = await GenerationBuilder(Registry(), bundled_handlers()).prepare(
        snapshot, purpose="trial"
    )
    await trial.abort()
    return trial.generation


def replay_all(generation: Generation, trace: Path) -> list[Replayed]:
    """Replay a trace without damaged lines."""
    traces = Traces(trace)
    found = [replay(generation, each.record) for each in traces.oldest_first()]
    assert traces.told == []
    return found


def edited(old: str, new: str) -> str:
    """The configuration with one edit."""
    assert old in CONFIG, old
    return CONFIG.replace(old, new)
