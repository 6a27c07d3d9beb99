"""Opens the models that are reached over HTTP; imported by ``factory`` once a profile names one."""

import httpx2

from session_runtime.config.keys import dotted
from session_runtime.config.models import ModelProfile
from session_runtime.errors import ConfigError, Problem
from session_runtime.models.base import Model
from session_runtime.models.chat import ChatModel
from session_runtime.models.http import open_client
from session_runtime.models.responses import ResponsesModel


def open_service(name: str, profile: ModelProfile) -> Model:
    """The model of profile ``name``; ConfigError for an address that is none."""
    adapter = ResponsesModel if profile.wire == "responses" else ChatModel
    try:
        return adapter(profile, open_client(profile.base_url or ""))
    except httpx2.InvalidURL as error:
        problem = Problem(f"is no address: {error}", dotted(("models", name, "base_url")))
        raise ConfigError([problem]) from error
