"""Tools, profiles and requests for tests of models, and models that talk to a fake upstream."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

from session_runtime.config.models import ModelProfile
from session_runtime.errors import SessionRuntimeError
from session_runtime.models.base import Model, ModelReply, ModelRequest
from session_runtime.models.chat import ChatModel
from session_runtime.models.http import open_client
from session_runtime.models.messages import MessagesModel
from session_runtime.models.responses import ResponsesModel
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


HttpModel = ChatModel | MessagesModel | ResponsesModel
HttpWire = Literal["chat", "responses", "anthropic"]
_ADAPTERS = {"chat": ChatModel, "anthropic": MessagesModel, "responses": ResponsesModel}


@asynccontextmanager
async def service(
    wire: HttpWire, replies: Replies, **settings: Any
) -> AsyncIterator[tuple[HttpModel, Upstream]]:
    """A model of a profile with ``settings``, and the server that it speaks to."""
    async with Upstream(replies) as upstream:
        model = opened(profile(upstream.base_url, wire=wire, **settings))
        try:
            yield model, upstream
        finally:
            await model.aclose()


def opened(settings: ModelProfile) -> HttpModel:
    """The model of a profile; whoever opens it closes it."""
    return _ADAPTERS[settings.wire](settings, open_client(settings.base_url or ""))


def chat(
    replies: Replies, **settings: Any
) -> AbstractAsyncContextManager[tuple[HttpModel, Upstream]]:
    """A model on the wire ``chat``."""
    return service("chat", replies, **settings)


def responses(
    replies: Replies, **settings: Any
) -> AbstractAsyncContextManager[tuple[HttpModel, Upstream]]:
    """A model on the wire ``responses``."""
    return service("responses", replies, **settings)


def messages(
    replies: Replies, **settings: Any
) -> AbstractAsyncContextManager[tuple[HttpModel, Upstream]]:
    """A model on the wire ``anthropic``."""
    return service("anthropic", replies, **settings)


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
