"""What the MQTT door is told of the runtime behind it."""

from pathlib import Path

import pytest

from session_runtime.app.mqtt import RuntimeDoor
from session_runtime.registry.keyring import hash_of
from tests.support import opened
from tests.transports.stub import key_of

BOUNDS = "[runtime]\nmax_concurrent_asks = 3\nmax_waiting_asks = 2\n"
SIGNERS = "".join(
    f'[http.keys.{name}]\nhash = "{hash_of(key_of(name))}"\n'
    f'[mqtt.signers.{name}]\nsecret = "{name * 16}"\n'
    for name in ("ann", "bob")
)


@pytest.mark.parametrize(("signers", "most"), [("", 5), (SIGNERS, 7)], ids=["no keys", "two"])
@pytest.mark.requirement("NET-6d")
async def test_a_replica_has_room_for_all_that_run_and_for_the_queue_of_each_principal(
    signers: str, most: int, tmp_path: Path
) -> None:
    async with opened(tmp_path, BOUNDS + signers) as runtime:
        assert RuntimeDoor(runtime).most_at_hand() == most
