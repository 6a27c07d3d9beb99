"""Opens the model of a profile and tells which profiles may share one; who shares is ``generation``."""

import hashlib
import importlib
import json
from dataclasses import replace
from typing import Any, assert_never

from session_runtime.config.json_value import thawed
from session_runtime.config.keys import dotted
from session_runtime.config.models import ModelProfile
from session_runtime.models.base import Model
from session_runtime.models.deferred import DeferredModel
from session_runtime.models.recovery import THINKING, Dialect, RecoveringModel


def open_model(name: str, profile: ModelProfile) -> Model:
    """The model of profile ``name``, ready to reply; nothing is sent yet.

    Raises ConfigError for an address or a script that cannot be used. The caller closes the model.
    """
    match profile.wire:
        case "chat" | "responses" | "anthropic":
            return _at_service(name, profile)
        case "scripted":
            assert profile.script is not None, "ModelProfile asks for it"
            key = dotted(("models", name, "script"))
            scripted = importlib.import_module("session_runtime.models.scripted")
            played: Model = scripted.ScriptedModel(scripted.read_script(profile.script, key))
            return played
        case "offline":
            return DeferredModel(_offline)
        case _:
            assert_never(profile.wire)


def in_dialect(model: Model, profile: ModelProfile) -> Model:
    """The model with what its profile says of its texts: whether they may be calls or thinking (ASK-6).

    And with the words in which it is told of tools, where its profile wants that.
    """
    if profile.wire == "offline":
        return model
    thinking_field = THINKING if profile.wire == "chat" else None
    dialect = Dialect(profile.recover_text_calls, profile.starts_thinking, thinking_field)
    if profile.call_mode == "native":
        return RecoveringModel(model, dialect)
    modes = importlib.import_module("session_runtime.models.modes")
    if profile.call_mode == "text":
        return RecoveringModel(modes.TextModel(model), dialect)
    in_schema = modes.SchemaModel(RecoveringModel(model, dialect))
    return RecoveringModel(in_schema, replace(dialect, begun=False))  # what stands in the answer


def profile_digest(profile: ModelProfile) -> str:
    """Equal for profiles that one model object can serve: same values, secrets and script content.

    Secrets go into the hash; keep the digest in memory only, it is not meant to be shown (CFG-4).
    """
    apart = {"api_key", "headers", "extra_body"}
    values: dict[str, Any] = profile.model_dump(mode="json", exclude=apart)
    values["api_key"] = profile.api_key.get_secret_value() if profile.api_key else None
    values["headers"] = {name: each.get_secret_value() for name, each in profile.headers.items()}
    values["extra_body"] = thawed(profile.extra_body)
    if profile.wire == "scripted" and profile.script is not None and profile.script.is_file():
        values["script_content"] = hashlib.blake2b(profile.script.read_bytes()).hexdigest()
    text = json.dumps(values, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _offline() -> Model:
    """Its words and phrases take longer to import than the rest of what a small daemon needs."""
    opened: Model = importlib.import_module("session_runtime.models.offline").OfflineModel()
    return opened


def _at_service(name: str, profile: ModelProfile) -> Model:
    """Open it by what stands on the HTTP client, whose import costs more than most of the others."""
    opened: Model = importlib.import_module("session_runtime.models.service").open_service(
        name, profile
    )
    return opened
