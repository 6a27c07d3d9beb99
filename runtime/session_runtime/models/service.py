"""Opens the models that are reached over HTTP; imported by ``factory`` once a profile names one."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import httpx2

from session_runtime.config.keys import dotted
from session_runtime.config.models import ModelProfile, Wire
from session_runtime.errors import ConfigError, Problem
from session_runtime.models.base import Model
from session_runtime.models.chat import ChatModel
from session_runtime.models.http import open_client
from session_runtime.models.messages import MessagesModel
from session_runtime.models.responses import ResponsesModel

_ADAPTERS: Final[Mapping[Wire, Callable[[ModelProfile, httpx2.AsyncClient], Model]]] = (
    MappingProxyType({"chat": ChatModel, "responses": ResponsesModel, "anthropic": MessagesModel})
)


def open_service(name: str, profile: ModelProfile) -> Model:
    """The model of profile ``name``; ConfigError for an address that is none."""
    try:
        return _ADAPTERS[profile.wire](profile, open_client(profile.base_url or ""))
    except httpx2.InvalidURL as error:
        problem = Problem(f"is no address: {error}", dotted(("models", name, "base_url")))
        raise ConfigError([problem]) from error
