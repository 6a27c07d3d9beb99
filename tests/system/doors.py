"""Every way in to the same runtime, each behind the same call: what is asked, and what came of it."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2

from session_runtime import AskRequest, Identity, Runtime, message_from_json
from session_runtime.app.mqtt import open_mqtt
from session_runtime.client.mqtt import MqttClient, Signer
from session_runtime.client.mqtt_line import Broker
from session_runtime.errors import RequestError
from session_runtime.types import AskEvent, AskResult
from session_runtime.wire import result_to_json
from tests.support import opened
from tests.system.mosquitto import broker
from tests.transports.stub import EVENTS, bearer, calling, frames, key_of

SIGNING = "s" * 32
JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """An ask in terms that every door has; ``key`` is whose key comes with it, if any does."""

    text: str = "How is the weather?"
    user: str | None = None
    roles: tuple[str, ...] = ()
    model: str | None = None
    instructions: str | None = None
    history: tuple[Mapping[str, str], ...] = ()
    key: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is no more than a text and for whom it is asked."""
        return not (self.instructions or self.history or self.key)

    @property
    def as_ask(self) -> JsonObject:
        """It in our own JSON."""
        who: JsonObject = {"user": self.user} if self.user else {}
        who |= {"roles": list(self.roles)} if self.roles else {}
        told: JsonObject = {"messages": [{"role": "user", "content": self.text}], "identity": who}
        if self.history:
            told["history"] = list(self.history)
        given = {"instructions": self.instructions, "model": self.model}
        return told | {name: value for name, value in given.items() if value is not None}

    @property
    def as_completion(self) -> JsonObject:
        """It as OpenAI's interface has it."""
        told = self.as_ask
        system = [{"role": "system", "content": self.instructions}] if self.instructions else []
        extension = {"identity": {"roles": list(self.roles)}} if self.roles else None
        return {
            "model": self.model,
            "messages": [*system, *self.history, *told["messages"]],
            "user": self.user,
            "session_runtime": extension,
        }

    @property
    def headers(self) -> dict[str, str]:
        return bearer(self.key) if self.key else {}


@dataclass(frozen=True)
class Came:
    """What a door gave: the result as far as it tells it or why there is none; the text for the person."""

    result: JsonObject = field(default_factory=dict)
    error: JsonObject | None = None
    content: str | None = None


@dataclass(frozen=True)
class Place:
    """Where it is asked: an empty folder, and the text of the configuration."""

    folder: Path
    config: str


Ask = Callable[[Place, Question], Awaitable[Came]]


@dataclass(frozen=True)
class Door:
    """A way in; ``takes`` says whether a question can be asked there at all."""

    ask: Ask
    takes: Callable[[Question], bool] = lambda question: True


def came_of(result: JsonObject) -> Came:
    """What a whole result comes to."""
    if result["outcome"] == "failed":
        return Came(error=result["error"])
    return Came(result)


def as_json(result: AskResult) -> JsonObject:
    return dict(json.loads(json.dumps(result_to_json(result))))


async def in_process(
    place: Place, question: Question, emit: Callable[[AskEvent], None] = lambda event: None
) -> Came:
    async with opened(place.folder, place.config) as runtime:
        request = AskRequest(
            messages=(message_from_json(question.as_ask["messages"][0]),),
            history=tuple(map(message_from_json, question.history)),
            instructions=question.instructions,
            identity=Identity(question.user, frozenset(question.roles) or None),
            model=question.model,
        )
        if question.key is not None:
            owner = runtime.keys().owner(key_of(question.key).encode())
            assert owner is not None
            request = replace(request, principal=owner)
        return came_of(as_json(await runtime.ask(request, emit)))


@asynccontextmanager
async def _client(place: Place) -> AsyncIterator[httpx2.AsyncClient]:
    async with opened(place.folder, place.config) as runtime, calling(runtime) as client:
        yield client


async def over_http(place: Place, question: Question) -> Came:
    async with _client(place) as client:
        answer = await client.post("/v1/ask", json=question.as_ask, headers=question.headers)
    told = answer.json()
    return came_of(told) if answer.status_code == 200 else Came(error=told["error"])


async def as_events(place: Place, question: Question) -> Came:
    async with _client(place) as client:
        headers = question.headers | EVENTS
        answer = await client.post("/v1/ask", json=question.as_ask, headers=headers)
    if answer.status_code != 200:
        return Came(error=answer.json()["error"])
    return came_of(frames(answer.text)[-1][1]["result"])


async def _completed(place: Place, question: Question, **more: object) -> httpx2.Response:
    async with _client(place) as client:
        body = {**question.as_completion, **more}
        return await client.post("/v1/chat/completions", json=body, headers=question.headers)


async def as_completion(place: Place, question: Question) -> Came:
    answer = await _completed(place, question)
    told = answer.json()
    if answer.status_code != 200:
        return Came(error=told["error"]["session_runtime"])
    return Came(told["session_runtime"], content=told["choices"][0]["message"]["content"])


async def as_chunks(place: Place, question: Question) -> Came:
    answer = await _completed(place, question, stream=True)
    if answer.status_code != 200:
        return Came(error=answer.json()["error"]["session_runtime"])
    *pieces, done, _ = answer.text.split("\n\n")
    assert done == "data: [DONE]"
    chunks = [json.loads(piece.removeprefix("data: ")) for piece in pieces]
    said = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
    return Came(chunks[-1]["session_runtime"], content="".join(said))


async def over_mqtt(place: Place, question: Question) -> Came:
    signed = f'[mqtt.signers.{question.key}]\nsecret = "{SIGNING}"\n' if question.key else ""
    async with broker(place.folder) as mosquitto:
        door = f"[mqtt]\nenabled = true\nurl = 'mqtt://127.0.0.1:{mosquitto.port}'\n"
        async with opened(place.folder, place.config + door + signed) as runtime:
            return await _published(runtime, Broker(port=mosquitto.port), question)


async def _published(runtime: Runtime, where: Broker, question: Question) -> Came:
    stop = asyncio.Event()
    serving = asyncio.create_task(open_mqtt(runtime).serve(stop))
    signer = Signer(question.key, SIGNING) if question.key else None
    try:
        async with MqttClient(where, signer=signer, silence_s=2) as client:
            answer = await client.ask(question.as_ask, timeout_s=60)
        return came_of(dict(answer.result))
    except RequestError as error:
        return Came(error={"code": error.code, "message": str(error)})
    finally:
        stop.set()
        await serving


async def by_command(place: Place, question: Question) -> Came:
    """``session-runtime ask --json``, a process of its own without a daemon."""
    config = place.folder / "config.toml"
    config.write_text(f"{place.config}\n[trace]\nenabled = false\n", encoding="utf-8")
    options = [*(f"--role={role}" for role in question.roles)]
    options += [f"--user={question.user}"] if question.user else []
    options += [f"--model={question.model}"] if question.model else []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "session_runtime", "ask", question.text, "--json"),
        *("--config", str(config), *options),
        env={name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complained = await process.communicate()
    assert printed, complained.decode()
    return came_of(json.loads(printed))
