"""The section [mqtt]: what it refuses, and how it fits to the keys of principals (NET-6)."""

import importlib.machinery
import importlib.util

import pytest

from session_runtime.app.mqtt import replica_name
from session_runtime.config.addresses import BrokerAddress, broker_address
from session_runtime.config.changes import changes
from session_runtime.config.explain import show
from session_runtime.config.restart import held_back
from session_runtime.registry.keyring import hash_of
from tests.config.conftest import Reader

BOT = f'[http.keys.bot]\nhash = "{hash_of("sr_bot")}"\n'
SIGNER = '[mqtt.signers.bot]\nsecret = "env:BOT_SECRET"\n'
ON = "[mqtt]\nenabled = true\n"
TLS = 'url = "mqtts://broker.example.org"\n'
ENV = {"BOT_SECRET": "s" * 32, "MQTT_PASSWORD": "p"}


@pytest.mark.requirement("INT-1")
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('prefix = "a/#"', "must be at most 8 names joined by /, without spaces, +, # and $"),
        ('prefix = "/a"', "none of them empty"),
        ('prefix = "$share/x"', "without spaces, +, # and $"),
        ('group = "a/b"', "use up to 64 letters, digits, _, - and ."),
        ('client_id = "a b"', "use up to 64 letters, digits, _, - and ."),
        (f'{TLS}tls_key = "k.pem"', "needs tls_cert, whose key it is"),
        (
            'tls_ca = "ca.pem"',
            "is of no use with an address of mqtt://: write mqtts:// in mqtt.url",
        ),
        (
            'tls_cert = "c.pem"',
            "is of no use with an address of mqtt://: write mqtts:// in mqtt.url",
        ),
        ('password = "env:MQTT_PASSWORD"', "needs username, whose password it is"),
        (
            "dedupe_window_s = 60.0\nmax_signed_s = 61.0",
            "must not be more than dedupe_window_s (60)",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(read: Reader, line: str, told: str) -> None:
    [problem] = read.problems(f"[mqtt]\n{line}\n", env=ENV)
    assert told in problem


@pytest.mark.requirement("INT-1c")
@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("mqtt://broker.example.org", BrokerAddress("broker.example.org", 1883, encrypted=False)),
        ("mqtts://broker.example.org", BrokerAddress("broker.example.org", 8883, encrypted=True)),
        ("MQTTS://Broker:1", BrokerAddress("broker", 1, encrypted=True)),
        ("mqtt://[::1]:1884", BrokerAddress("::1", 1884, encrypted=False)),
    ],
)
def test_an_address_says_host_port_and_whether_the_connection_is_encrypted(
    url: str, broker: BrokerAddress
) -> None:
    assert broker_address(url) == broker


@pytest.mark.requirement("INT-1c")
@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://broker", "must be an address that begins with mqtt:// or mqtts://"),
        ("broker:1883", "must be an address that begins with mqtt:// or mqtts://"),
        ("mqtt://", "must be an address that begins with mqtt:// or mqtts://"),
        ("mqtt://a b", "must be an address that begins with mqtt:// or mqtts://"),
        ("mqtt://:1883", "must name a host, and a port from 1 to 65535 or none"),
        ("mqtt://broker:0", "must name a host, and a port from 1 to 65535 or none"),
        ("mqtt://broker:65536", "must name a host, and a port from 1 to 65535 or none"),
        ("mqtt://broker:x", "must name a host, and a port from 1 to 65535 or none"),
        ("mqtt://broker/", "must end after host and port"),
        ("mqtt://broker?tls=1", "must end after host and port"),
        ("mqtt://broker#x", "must end after host and port"),
    ],
)
def test_what_is_no_address_of_a_broker_is_refused(read: Reader, url: str, told: str) -> None:
    [problem] = read.problems(f"[mqtt]\nurl = '{url}'\n")
    assert problem.startswith(f"config.toml:2: mqtt.url: {told}")


@pytest.mark.requirement("CFG-4")
def test_a_password_in_the_address_is_refused_and_not_repeated(read: Reader) -> None:
    [problem] = read.problems("[mqtt]\nurl = 'mqtt://bot:hunter2@broker'\n")
    assert problem == (
        "config.toml:2: mqtt.url: must hold no user or password: give them as mqtt.username and"
        " mqtt.password"
    )


@pytest.mark.requirement("NET-6e")
def test_without_keys_the_broker_must_be_on_this_machine(read: Reader) -> None:
    assert read(f"{ON}url = 'mqtt://localhost'\n").settings.mqtt.enabled
    [problem] = read.problems(f"{ON}{TLS}")
    assert problem.startswith("config.toml:3: mqtt.url: publishers need no signature, so only")
    assert read(f"{ON}{TLS}{BOT}{SIGNER}", env=ENV).settings.mqtt.signers


@pytest.mark.requirement("NET-6e")
def test_a_signer_and_its_principal_may_come_one_after_the_other_and_it_is_told(
    read: Reader,
) -> None:
    [unknown] = read(SIGNER, env=ENV).warnings
    assert (unknown.key, "session-runtime keys add bot" in str(unknown)) == (
        "mqtt.signers.bot.secret",
        True,
    )
    [nobody] = read(f"{ON}{BOT}").warnings
    assert "nobody may ask without a signature: add [mqtt.signers.NAME]" in str(nobody)
    assert read(f"{ON}{BOT}{SIGNER}", env=ENV).warnings == ()


@pytest.mark.requirement("CFG-4")
def test_the_secret_of_a_signer_is_long_and_never_shown(read: Reader) -> None:
    [short] = read.problems(f"{BOT}{SIGNER}", env={"BOT_SECRET": "hunter2-hunter2"})
    assert "is shorter than 32 characters" in short
    assert "hunter2" not in short
    [missing] = read.problems(f"{BOT}[mqtt.signers.bot]\n")
    assert 'is missing: give it as "env:NAME" or "file:/path"' in missing
    snapshot = read(f"{BOT}{SIGNER}", env=ENV)
    shown = {each.key: each.value for each in show(snapshot)}
    assert shown["mqtt.signers.bot.secret"] == "env:BOT_SECRET"
    assert "ssss" not in repr(snapshot.settings)


def test_a_missing_library_is_told_before_the_daemon_needs_it(
    read: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(name: str) -> importlib.machinery.ModuleSpec | None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find)
    [problem] = read.problems(ON)
    assert (
        "needs aiomqtt, which is not installed: pip install '.[mqtt]' in the source tree" in problem
    )


@pytest.mark.requirement("REL-4")
def test_the_connection_acts_after_a_restart_and_signers_on_the_next_ask(read: Reader) -> None:
    running = read(f"{ON}{BOT}{SIGNER}", env=ENV)
    text = f"{ON}url = 'mqtt://127.0.0.1:1884'\n{BOT}{SIGNER}"
    edited = read(text, env={**ENV, "BOT_SECRET": "t" * 32})
    acts = {each.key: each.acts for each in changes(running, edited)}
    assert acts == {"mqtt.url": "restart", "mqtt.signers.bot.secret": "next ask"}
    settings = held_back(running, edited)[0].settings.mqtt
    assert settings.url == "mqtt://127.0.0.1:1883"
    assert settings.signers["bot"].secret.get_secret_value() == "t" * 32


def test_a_replica_is_named_by_its_host_and_state_unless_it_has_a_name(read: Reader) -> None:
    here, there = (
        replica_name(read(f'[runtime]\nstate_dir = "{folder}"\n').settings, "pod 1")
        for folder in ("a", "b")
    )
    assert here.startswith("pod-1-")
    assert here != there
    assert replica_name(read('[mqtt]\nclient_id = "r1"\n').settings, "pod 1") == "r1"


@pytest.mark.requirement("INT-1c")
@pytest.mark.parametrize(
    ("line", "given"),
    [('host = "broker.local"', '"broker.local"'), ("port = 1883", "1883"), ("tls = true", "true")],
)
def test_what_an_address_says_is_no_key_of_its_own(read: Reader, line: str, given: str) -> None:
    [problem] = read.problems(f"[mqtt]\n{line}\n")
    assert problem.endswith(
        f"mqtt.{line.split()[0]}: unknown key (given: {given}); mqtt.url says it: mqtt://host:port, or"
        " mqtts://host:port with TLS"
    )
