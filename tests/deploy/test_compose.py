"""compose.yaml and what it mounts: the daemon accepts it, and each service can do no more than it has to."""

import re
from pathlib import Path
from typing import Any

import pytest

from session_runtime.app.serve import LAST_GRACE_S
from session_runtime.registry.keyring import open_keyring
from session_runtime.transports.http.server import GRACE_S
from tests.deploy.files import FOLDER, SECRETS, UID, compose, environment, loaded

BROKER = FOLDER / "compose" / "broker"


@pytest.fixture
def daemon() -> Any:
    return compose()["services"]["daemon"]


@pytest.fixture
def config() -> Path:
    return FOLDER / "compose" / "daemon" / "config.toml"


def test_the_daemon_accepts_its_configuration_without_a_warning(
    config: Path, tmp_path: Path
) -> None:
    snapshot = loaded(config, tmp_path, {})
    assert snapshot.warnings == ()
    assert (snapshot.settings.http.port, snapshot.settings.mqtt.url) == (8040, "mqtt://broker")


def test_its_secrets_are_those_that_are_mounted(daemon: Any, config: Path) -> None:
    lines = [line for line in config.read_text("utf-8").splitlines() if line[:1] != "#"]
    named = set(re.findall(rf"file:{SECRETS}/([\w-]+)", "\n".join(lines)))
    assert named == set(daemon["secrets"])
    everybody = {name for each in compose()["services"].values() for name in each["secrets"]}
    assert everybody == set(compose()["secrets"])
    ignored = (FOLDER.parents[1] / ".gitignore").read_text("utf-8").split()
    for each in compose()["secrets"].values():
        assert each["file"].startswith("./secrets/")
    assert "docs/deploy/secrets/" in ignored


def test_nobody_knows_the_keys_that_are_shipped(config: Path, tmp_path: Path) -> None:
    keys = loaded(config, tmp_path, {}).settings.http.keys
    for each in keys.values():
        assert len(set(each.hash.removeprefix("sha256:"))) == 1
    assert open_keyring(keys)


@pytest.mark.parametrize("name", ["daemon", "broker"])
def test_each_service_can_do_no_more_than_it_has_to(name: str) -> None:
    service = compose()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    user, _, group = service["user"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    for port in service["ports"]:
        assert port.startswith("127.0.0.1:")


def test_only_the_state_and_tmp_of_the_daemon_can_be_written(daemon: Any) -> None:
    assert daemon["user"] == f"{UID}:{UID}"
    state = environment()["SESSION_RUNTIME__RUNTIME__STATE_DIR"]
    writable = [each for each in daemon["volumes"] if not each.endswith(":ro")]
    assert (writable, daemon["tmpfs"]) == ([state], ["/tmp"])


@pytest.mark.requirement("REL-5")
def test_the_configuration_is_mounted_as_a_folder(daemon: Any) -> None:
    [mount] = [each for each in daemon["volumes"] if each.endswith(":ro")]
    source, target, _ = mount.split(":")
    assert (FOLDER / source).is_dir()
    assert environment()["SESSION_RUNTIME_CONFIG"] == f"{target}/config.toml"


@pytest.mark.requirement("REL-8a")
def test_a_stop_may_take_as_long_as_asks_may_run(daemon: Any, config: Path, tmp_path: Path) -> None:
    drain_s = loaded(config, tmp_path, {}).settings.runtime.drain_timeout_s
    grace_s = int(daemon["stop_grace_period"].removesuffix("s"))
    assert grace_s > drain_s + 2 * GRACE_S + LAST_GRACE_S


@pytest.mark.parametrize("name", ["daemon", "broker"])
def test_what_a_container_logs_does_not_fill_the_disk(name: str) -> None:
    logging = compose()["services"][name]["logging"]
    assert logging == {"driver": "local", "options": {"max-size": "10m", "max-file": "5"}}


def test_every_replica_gets_a_port(daemon: Any) -> None:
    [ports] = daemon["ports"]
    _, ours, inside = ports.split(":")
    first, final = map(int, ours.split("-"))
    assert final - first + 1 == daemon["deploy"]["replicas"]
    assert inside == "8040"


def test_the_broker_passes_on_what_the_daemon_sends(config: Path, tmp_path: Path) -> None:
    lines = (BROKER / "mosquitto.conf").read_text("utf-8").splitlines()
    said = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    most = loaded(config, tmp_path, {}).settings.mqtt.max_payload_bytes
    assert int(said["max_packet_size"]) > most
    assert int(said["message_size_limit"]) >= int(said["max_packet_size"])  # the one that is told
    assert (said["allow_anonymous"], said["set_tcp_nodelay"]) == ("false", "true")
    assert Path(said["password_file"]).parent == SECRETS
    assert Path(said["password_file"]).name in compose()["services"]["broker"]["secrets"]
