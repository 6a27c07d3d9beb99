"""Opens the model of a profile and tells which profiles may share one; who shares is ``generation``."""

import hashlib
import json
from typing import Any, assert_never

import httpx2

from session_runtime.config.models import ModelProfile
from session_runtime.errors import ConfigError, Problem
from session_runtime.models.base import Model
from session_runtime.models.chat import ChatModel, open_client
from session_runtime.models.offline import OfflineModel
from session_runtime.models.scripted import ScriptedModel, read_script


def open_model(name: str, profile: ModelProfile) -> Model:
    """The model of profile ``name``, ready to reply; nothing is sent yet.

    Raises ConfigError for an address or a script that cannot be used. The caller closes the model.
    """
    match profile.wire:
        case "chat":
            return _chat(name, profile)
        case "scripted":
            assert profile.script is not None, "ModelProfile asks for it"
            return ScriptedModel(read_script(profile.script))
        case "offline":
            return OfflineModel()
        case _:
            assert_never(profile.wire)


def profile_digest(profile: ModelProfile) -> str:
    """Equal for profiles that one model object can serve: same values, key and script content.

    The key goes into the hash; keep the digest in memory only, it is not meant to be shown (CFG-4).
    """
    values: dict[str, Any] = profile.model_dump(mode="json", exclude={"api_key"})
    values["api_key"] = profile.api_key.get_secret_value() if profile.api_key else None
    if profile.wire == "scripted" and profile.script is not None and profile.script.is_file():
        values["script_content"] = hashlib.blake2b(profile.script.read_bytes()).hexdigest()
    text = json.dumps(values, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _chat(name: str, profile: ModelProfile) -> ChatModel:
    try:
        return ChatModel(profile, open_client(profile.base_url or ""))
    except httpx2.InvalidURL as error:
        problem = Problem(f"is no address: {error}", key=f"models.{name}.base_url")
        raise ConfigError([problem]) from error
