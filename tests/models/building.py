"""Tools, profiles and requests for tests of models, and a chat model that talks to a fake upstream."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from session_runtime.config.models import ModelProfile
from session_runtime.errors import SessionRuntimeError
from session_runtime.models.base import Model, ModelReply, ModelRequest
from session_runtime.models.chat import ChatModel, open_client
from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import Origin, ToolSpec
from session_runtime.testing.upstream import Replies, Upstream
from session_runtime.types import Message

KEY = "not-a-real-key-0123456789"


def tool(
    name: str,
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
    origin: Origin = "handler",
    **more: Any,
) -> ToolSpec:
    schema = parameters if parameters is not None else {"type": "object", "properties": {}}
    return ToolSpec(name, description, schema, origin, "tests", name, "digest", **more)


def properties(*required: str, **schemas: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of type object."""
    return {"type": "object", "properties": dict(schemas), "required": list(required)}


def request(
    *messages: Message, tools: Iterable[ToolSpec] = (), separator: str = "__"
) -> ModelRequest:
    specs = tuple(tools)
    names = build_wire_names((spec.name for spec in specs), separator)
    return ModelRequest(messages or (Message("user", "hello"),), specs, names)


def profile(base_url: str, **settings: Any) -> ModelProfile:
    values = {"model": "m", "api_key": KEY, "timeout_s": 30.0, **settings}
    return ModelProfile.model_validate({"base_url": base_url, **values}, strict=False)


@asynccontextmanager
async def chat(replies: Replies, **settings: Any) -> AsyncIterator[tuple[ChatModel, Upstream]]:
    """A chat model of a profile with ``settings``, and the server that it speaks to."""
    async with Upstream(replies) as upstream:
        model = ChatModel(profile(upstream.base_url, **settings), open_client(upstream.base_url))
        try:
            yield model, upstream
        finally:
            await model.aclose()


async def ask(model: Model, asked: ModelRequest | None = None) -> tuple[ModelReply, list[str]]:
    """The reply, and the pieces of text in the order in which they were told."""
    told: list[str] = []
    reply = await model.reply(asked or request(), told.append)
    return reply, told


async def failure(model: Model, asked: ModelRequest | None = None) -> SessionRuntimeError:
    """The error that a reply fails with."""
    try:
        reply, _ = await ask(model, asked)
    except SessionRuntimeError as error:
        return error
    raise AssertionError(f"the model replied: {reply}")
