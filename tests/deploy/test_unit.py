"""The unit that comes with the project says what the daemon understands."""

import shlex
from pathlib import Path

import pytest

from session_runtime.app.serve import LAST_GRACE_S
from session_runtime.cli import exits, serve
from session_runtime.config.load import load
from session_runtime.config.runtime import RuntimeSettings
from session_runtime.transports.http.server import GRACE_S

UNIT = Path(__file__).parents[2] / "docs" / "deploy" / "session-runtime.service"


def settings(*, commented: bool = False) -> dict[str, list[str]]:
    """The settings of the section [Service] with all their values, those in comments too if wanted."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in UNIT.read_text("utf-8").splitlines():
        text = line.removeprefix("#") if commented and not line.startswith("# ") else line
        if text.startswith("["):
            section = text
        elif "=" in text and not text.startswith("#") and section == "[Service]":
            name, _, value = text.partition("=")
            found.setdefault(name, []).append(value)
    return found


@pytest.mark.requirement("REL-8b")
def test_the_unit_starts_what_notifies_reloads_by_signal_and_gives_signs_of_life() -> None:
    service = settings()
    assert service["Type"] == ["notify-reload"]
    assert int(service["WatchdogSec"][0]) > 0
    assert service["KillMode"] == ["mixed"]
    assert "ExecReload" not in service


def test_the_command_is_one_that_exists() -> None:
    program, name, *options = shlex.split(settings()["ExecStart"][0])
    assert (program, name) == ("/opt/session-runtime/bin/session-runtime", serve.command.name)
    with serve.command.make_context(name, options) as context:
        assert context.params["config"] == "/etc/session-runtime/config.toml"


def test_it_is_installed_with_all_that_its_configuration_may_want_and_has_a_bound_on_memory() -> (
    None
):
    page = (UNIT.parents[1] / "deploy.md").read_text("utf-8")
    install = "pip install '.[mcp,mqtt,web]'"
    assert install in UNIT.read_text("utf-8")
    assert install in page
    assert settings()["MemoryMax"] == ["2G"]


def test_what_a_restart_cannot_mend_is_not_restarted() -> None:
    codes = {int(code) for code in settings()["RestartPreventExitStatus"][0].split()}
    assert codes == {exits.USAGE, exits.CONFIG}


def test_a_stop_may_take_as_long_as_the_daemon_lets_asks_run() -> None:
    default = RuntimeSettings.model_fields["drain_timeout_s"].default
    assert int(settings()["TimeoutStopSec"][0]) > default + 2 * GRACE_S + LAST_GRACE_S


def test_its_variables_are_keys_and_the_state_is_in_the_folder_that_systemd_makes(
    tmp_path: Path,
) -> None:
    service = settings(commented=True)
    credential = tmp_path / "main_api_key"
    credential.write_text("hidden", "utf-8")
    pairs = [each.replace("%d", str(tmp_path)).partition("=") for each in service["Environment"]]
    env = {name: value for name, _, value in pairs}
    text = b'[models.main]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
    snapshot = load(tmp_path / "config.toml", named=True, env=env, text=text)
    assert snapshot.warnings == ()
    key = snapshot.settings.models["main"].api_key
    assert key is not None
    assert key.get_secret_value() == "hidden"
    state = f"/var/lib/{service['StateDirectory'][0]}"
    assert str(snapshot.settings.runtime.state_dir) == state == service["WorkingDirectory"][0]


def test_the_service_can_do_nothing_that_it_does_not_need() -> None:
    service = settings()
    on = {name for name, values in service.items() if values == ["yes"]}
    assert {"DynamicUser", "NoNewPrivileges", "PrivateDevices", "PrivateTmp", "ProtectHome"} <= on
    assert {"RestrictNamespaces", "RestrictSUIDSGID", "LockPersonality"} <= on
    assert service["ProtectSystem"] == ["strict"]
    assert service["CapabilityBoundingSet"] == [""]
    assert service["SystemCallFilter"] == ["@system-service"]
    assert set(service["RestrictAddressFamilies"][0].split()) == {"AF_UNIX", "AF_INET", "AF_INET6"}
