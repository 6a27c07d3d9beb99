"""What a client of MQTT is made with: names that can be parts of topics, and connections by the library."""

import importlib
import importlib.util
from typing import Final

from session_runtime.client.mqtt_line import Broker, Connect
from session_runtime.errors import PermanentError, RequestError
from session_runtime.wire.mqtt import is_client_name, is_prefix, is_replica_name

_LIBRARY: Final = "session_runtime.client.mqtt_broker"


def connect_to(broker: Broker) -> Connect:
    """Connections to a broker; PermanentError without the extra ``mqtt``."""
    if importlib.util.find_spec("aiomqtt") is None:
        raise PermanentError(
            "aiomqtt is not installed: pip install '.[mqtt]' in the source tree of session-runtime",
            code="mqtt.no_library",
        )
    # aiomqtt is an extra: whoever brings connections of their own needs nothing of it
    connect: Connect = importlib.import_module(_LIBRARY).BrokerConnect(broker)
    return connect


def checked_prefix(prefix: str) -> str:
    """The prefix of all topics; RequestError for one that can be none."""
    if not is_prefix(prefix):
        raise RequestError(
            f"prefix {prefix!r} cannot be part of a topic: give that of the daemons (mqtt.prefix), at most"
            " 8 names joined by /, without spaces, +, # and $"
        )
    return prefix


def own_level(name: str | None, broker: Broker | None) -> str:
    """The level of a client's own topic; RequestError for a name that can be none."""
    if name is None:
        user = None if broker is None else broker.username
        return user if user is not None and is_replica_name(user) else "client"
    if not is_client_name(name):
        raise RequestError(
            f"name {name!r} cannot be part of a topic: use printable characters without +, # and spaces,"
            " and no empty level"
        )
    return name
