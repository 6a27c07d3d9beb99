"""What the MQTT door needs from the runtime behind it."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from session_runtime.config.mqtt import MqttSettings
from session_runtime.registry.keyring import Keyring
from session_runtime.types import AskEvent, AskRequest, AskResult, Principal


class MqttDoor(Protocol):
    """The runtime as the MQTT door sees it; may be called at any time between open and close."""

    def ask(
        self, request: AskRequest, emit: Callable[[AskEvent], None], ask_id: str, chars: int
    ) -> Coroutine[Any, Any, AskResult]:
        """Run one ask, of that length in characters, under that id.

        Raises nothing but CancelledError, and emits ``ask.finished`` last.
        """

    def cancel(self, ask_id: str, principal: Principal) -> bool:
        """End an ask that this principal may end; whether it was there, and not told to end before."""

    def keys(self) -> Keyring:
        """The keys of the configuration in force."""

    def settings(self) -> MqttSettings:
        """The section [mqtt] in force."""

    def presence(self) -> Mapping[str, Any]:
        """What a fleet is told of this replica, as a JSON object without secrets; cheap."""

    def most_at_hand(self) -> int:
        """How many asks may run or wait for their turn at once."""
