"""Opens the MQTT door to a runtime, if it is configured; what it does is decided in ``transports/mqtt``."""

import asyncio
import hashlib
import importlib
import re
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from session_runtime.app.runtime import Runtime
from session_runtime.config.mqtt import MqttSettings
from session_runtime.config.settings import Settings
from session_runtime.registry.keyring import Keyring
from session_runtime.types import AskEvent, AskRequest, AskResult, Principal

_DOOR: Final = "session_runtime.transports.mqtt"
_LONGEST_HOST: Final = 40
_BY_CALLER: Final = "cancelled.caller"


class MqttServing(Protocol):
    """What the daemon does with the door."""

    async def serve(self, stop: asyncio.Event) -> None:
        """Take requests until ``stop`` is set."""

    def drain(self) -> None:
        """Take no further ones."""


class _Closed:
    """The door of a daemon that has none."""

    async def serve(self, stop: asyncio.Event) -> None:
        """Do nothing."""
        del stop

    def drain(self) -> None:
        """Do nothing."""


class RuntimeDoor:
    """A runtime as the MQTT door needs it; see ``MqttDoor``."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def ask(
        self, request: AskRequest, emit: Callable[[AskEvent], None], ask_id: str, chars: int
    ) -> AskResult:
        """See ``MqttDoor``."""
        return await self._runtime.ask(request, emit, ask_id, chars)

    def cancel(self, ask_id: str, principal: Principal) -> bool:
        """See ``MqttDoor``: one may end its own asks, and an administrator all."""
        running = self._runtime.running
        found = (ask for ask in running.list() if ask.ask_id == ask_id)
        if not any(principal.admin or ask.principal == principal.name for ask in found):
            return False
        return running.cancel(ask_id, "its caller ended this ask", _BY_CALLER) > 0

    def keys(self) -> Keyring:
        """See ``MqttDoor``."""
        return self._runtime.keys()

    def settings(self) -> MqttSettings:
        """See ``MqttDoor``."""
        return self._runtime.generation.settings.mqtt

    def presence(self) -> Mapping[str, Any]:
        """See ``MqttDoor``."""
        return self._runtime.presence()

    def most_at_hand(self) -> int:
        """See ``MqttDoor``: each principal has a queue of its own."""
        settings = self._runtime.generation.settings
        principals = max(1, len(settings.mqtt.signers))
        bounds = settings.runtime
        waiting = min(principals * bounds.max_waiting_asks, bounds.max_waiting_asks_in_all)
        return bounds.max_concurrent_asks + waiting


def open_mqtt(runtime: Runtime) -> MqttServing:
    """The door as the configuration in force has it; one that does nothing unless it is enabled."""
    settings = runtime.generation.settings
    if not settings.mqtt.enabled:
        return _Closed()
    # aiomqtt is an extra: without the door nothing of it is there, or imported
    broker = importlib.import_module(f"{_DOOR}.broker").Broker
    endpoint = importlib.import_module(f"{_DOOR}.endpoint").MqttEndpoint
    door, replica = RuntimeDoor(runtime), replica_name(settings, socket.gethostname())
    opened: MqttServing = endpoint(door, broker(door.settings, replica), replica, runtime.mqtt)
    return opened


def replica_name(settings: Settings, host: str) -> str:
    """The name of this replica: as configured, or one that only the owner of its state directory has."""
    if settings.mqtt.client_id is not None:
        return settings.mqtt.client_id
    place = hashlib.sha256(str(settings.runtime.state_dir).encode("utf-8", "surrogateescape"))
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", host)[:_LONGEST_HOST] or "host"
    return f"{plain}-{place.hexdigest()[:8]}"
