"""What tests of whole asks share: handler folders, configurations, and a collected ask."""

import importlib
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from session_runtime import AskEvent, AskRequest, AskResult, Identity, Runtime
from session_runtime.config.handlers import HandlersSettings
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.generation import GenerationBuilder
from session_runtime.local.scan import Scan, scan
from session_runtime.registry.confirmations import Asker, Confirmations
from session_runtime.registry.invoke.consent import AskConsent

ECHO = "def execute(args, context):\n    return {'got': args}\n"
HANGS = """
import asyncio

async def execute(args, context):
    context.progress(1, 2, "half")
    try:
        await asyncio.Event().wait()
    finally:
        context.resources["cancelled"].append(context.call_id)
"""


async def check(snapshot: ConfigSnapshot, builder: GenerationBuilder) -> None:
    """Prepare a generation and let it go."""
    await (await builder.prepare(snapshot)).abort()


async def put_in_force(snapshot: ConfigSnapshot, builder: GenerationBuilder) -> None:
    """Prepare a generation and commit it."""
    (await builder.prepare(snapshot)).commit()


def write_handler(
    root: Path,
    name: str,
    *,
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
    runtime: Mapping[str, Any] | None = None,
    code: str = ECHO,
) -> Path:
    """Put a handler folder for the canonical ``name`` under ``root``."""
    folder = root.joinpath(*name.split("."))
    folder.mkdir(parents=True)
    config: dict[str, Any] = {
        "type": "function",
        "function": {
            "name": name,
            "description": description or f"Does {name}.",
            "parameters": parameters or {"type": "object", "properties": {}},
        },
    }
    if runtime is not None:
        config["runtime"] = dict(runtime)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "handler.py").write_text(code, encoding="utf-8")
    return folder


def write_agent(
    root: Path,
    name: str,
    *,
    prompt: str = "Do it.",
    settings: str = "",
    tools: Mapping[str, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    runtime: Mapping[str, Any] | None = None,
) -> Path:
    """Put a sub-agent under ``root``, with ``tools`` of its own: their names and code."""
    task = {"type": "object", "properties": {"task": {"type": "string"}}}
    written = write_handler(
        root / "agents", name, parameters=parameters or task, runtime=runtime, code=""
    )
    (written / "handler.py").unlink()
    (written / "prompt.md").write_text(prompt, encoding="utf-8")
    if settings:
        (written / "agent.toml").write_text(settings, encoding="utf-8")
    for tool, code in (tools or {}).items():
        write_handler(written / "tools", tool, code=code)
    return written


def scan_of(*paths: Path, bundled: Path | None = None, **keys: Any) -> Scan:
    """Scan these folders, or whatever other ``keys`` of [handlers] register."""
    return scan(HandlersSettings(paths=paths, **keys), bundled)


def install(
    site: Path, name: str, version: str, points: Mapping[str, str], files: Mapping[str, str]
) -> None:
    """Put an installed package below ``site``: its entry points of our group, and its files by path."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "entry_points.txt": "\n".join(
            ["[session_runtime.handlers]", *(f"{key} = {value}" for key, value in points.items())]
        ),
    }
    texts = {site / path: text for path, text in files.items()}
    texts |= {info / file: text for file, text in metadata.items()}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@contextmanager
def importable(site: Path) -> Iterator[None]:
    """Let Python find the modules below ``site`` for a while; none of them stays imported."""
    sys.path.insert(0, str(site))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(site))
        ours = {path.stem for path in site.iterdir()}
        for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
            del sys.modules[name]


def manifest(name: str, **runtime: object) -> str:
    """A ``config.json`` of a tool that takes nothing."""
    function = {"name": name, "description": f"Does {name}."}
    return json.dumps({"type": "function", "function": function, "runtime": runtime})


def write_config(folder: Path, text: str) -> Path:
    """Write a configuration file whose trace stays out of the way."""
    path = folder / "config.toml"
    path.write_text(f"{text}\n[trace]\nenabled = false\n", encoding="utf-8")
    return path


def chat_profile(base_url: str, **extra: object) -> str:
    """A default model profile ``main`` that speaks to an upstream."""
    settings = {"wire": "chat", "base_url": base_url, "model": "m", "max_retries": 0, **extra}
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join(["[models.main]", *lines, ""])


@asynccontextmanager
async def opened(folder: Path, text: str, **options: Any) -> AsyncIterator[Runtime]:
    """Open a runtime on a configuration text, shielded from this process's environment and unwatched."""
    options = {"env": {}, "watch": False, **options}
    async with Runtime.open(write_config(folder, text), **options) as runtime:
        yield runtime


@dataclass(frozen=True)
class Asked:
    """A finished ask: its result and every event."""

    result: AskResult
    events: list[AskEvent]

    def of(self, kind: type[AskEvent]) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


async def ask(runtime: Runtime, request: AskRequest | str, **fields: Any) -> Asked:
    """Ask and gather the events."""
    events: list[AskEvent] = []
    if isinstance(request, str):
        request = AskRequest(request, **fields)
    result = await runtime.ask(request, emit=events.append)
    return Asked(result, events)


def nobody_agrees() -> AskConsent:
    """The consent of an ask that begins."""
    return AskConsent(Confirmations(), Asker("local", Identity()), "ask_1", 600)


def scripted(folder: Path, *replies: Mapping[str, Any]) -> str:
    """A default profile that plays these replies to every question, one per turn."""
    script = folder / "script.json"
    script.write_text(json.dumps({"replies": list(replies)}), encoding="utf-8")
    return '[models.main]\nwire = "scripted"\nscript = "script.json"\nmax_retries = 0\n'


def says(text: str) -> dict[str, Any]:
    """A reply of text alone."""
    return {"text": text}


def calls(*wanted: tuple[str, Mapping[str, Any] | str], text: str = "") -> dict[str, Any]:
    """A reply that calls tools: pairs of name and arguments."""
    made = [{"name": name, "arguments": arguments} for name, arguments in wanted]
    return {"text": text, "calls": made}


def tool_folder(folder: Path) -> str:
    """The configuration that uses the handlers written below ``folder / "tools"``."""
    return f'[handlers]\npaths = ["{folder / "tools"}"]\n'
