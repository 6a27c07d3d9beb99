"""The daemon behind a real broker: asks, brokers and replicas that die, TLS, credentials (NET-6)."""

import asyncio
import signal
from pathlib import Path

import pytest
import trustme

from tests.system.mosquitto import Asker, asker, broker, needs_broker, user_file
from tests.system.test_daemon import Daemon, daemon

pytestmark = [pytest.mark.soak, needs_broker]

WAITS = """
import asyncio

async def execute(args, context):
    await asyncio.sleep(0.5)
    return "waited"
"""


def configuration(
    folder: Path, port: int, more: str = "", name: str = "r1", scheme: str = "mqtt"
) -> Path:
    place = folder / name
    place.mkdir(exist_ok=True)
    config = place / "config.toml"
    config.write_text(
        f'[skills]\nprefetch_tools = []\n[mqtt]\nenabled = true\nurl = "{scheme}://127.0.0.1:{port}"\n'
        f'client_id = "{name}"\n{more}',
        "utf-8",
    )
    return config


def online(one: Asker, replica: str = "r1") -> bool:
    return any(s["replica"] == replica and s["state"] == "online" for s in one.statuses())


async def connected(running: Daemon) -> None:
    if "connected to the MQTT broker" not in running.log:
        await running.logged("connected to the MQTT broker")


@pytest.mark.requirement("NET-6a")
async def test_an_ask_through_a_broker_is_answered_and_a_stop_says_offline(tmp_path: Path) -> None:
    async with broker(tmp_path) as mosquitto:
        async with (
            daemon(configuration(tmp_path, mosquitto.port)) as running,
            asker(mosquitto.port) as one,
        ):
            await one.until(lambda: online(one))
            await one.ask(b"1")
            await one.ask(b"1", attempt="2")
            await one.until(lambda: one.answers(b"1"))
            await one.ask(b"1", attempt="3")
            await one.until(lambda: len(one.answers(b"1")) == 2)
            running.process.send_signal(signal.SIGTERM)
            await one.until(lambda: one.statuses()[-1]["state"] == "offline")
            assert await running.process.wait() == 0
    first, again = one.answers(b"1")
    assert (first["text"], first["about"]["type"]) == ("12", "result")
    assert again["about"] | {"kept": "yes", "attempt": "3"} == again["about"]
    assert [each["state"] for each in one.statuses()] == ["online", "draining", "offline"]


@pytest.mark.requirement("NET-6d")
async def test_a_broker_that_is_killed_is_subscribed_to_again(tmp_path: Path) -> None:
    async with (
        broker(tmp_path) as mosquitto,
        daemon(configuration(tmp_path, mosquitto.port)) as running,
    ):
        await connected(running)
        for number in (b"1", b"2"):
            await mosquitto.kill()
            await mosquitto.start()
            await running.logged("connected to the MQTT broker")
            async with asker(mosquitto.port) as one:
                await one.until(lambda one=one: online(one))
                await one.ask(number)
                await one.until(lambda one=one, number=number: one.answers(number))
                assert one.answers(number)[0]["text"] == "12"


@pytest.mark.requirement("NET-6c")
async def test_a_retained_request_is_never_run(tmp_path: Path) -> None:
    config = 'group = ""\n'
    async with broker(tmp_path) as mosquitto, asker(mosquitto.port) as one:
        await one.ask(b"1", retain=True)
        for number in (b"2", b"3"):
            one.messages.clear()
            async with daemon(configuration(tmp_path, mosquitto.port, config)) as running:
                await one.until(lambda: online(one))
                await one.ask(b"1", retain=True)
                await one.ask(number)
                await one.until(lambda number=number: one.answers(number))
                running.process.terminate()
                await running.process.wait()
            assert one.answers(b"1") == []


@pytest.mark.requirement("NET-6c")
async def test_what_a_killed_replica_had_at_hand_is_sent_to_it_again_and_the_answer_says_so(
    tmp_path: Path,
) -> None:
    tool = tmp_path / "r1" / "tools" / "wait"
    tool.mkdir(parents=True)
    (tool / "config.json").write_text(
        '{"type": "function", "function": {"name": "wait", "description": "Wait."}}'
    )
    (tool / "handler.py").write_text(WAITS)
    (tmp_path / "r1" / "script.json").write_text(
        '{"replies": [{"calls": [{"name": "wait", "arguments": {}}]}, {"text": "done"}]}'
    )
    more = (
        'session_expiry_s = 60\n[handlers]\npaths = ["tools"]\n'
        '[models.main]\nwire = "scripted"\nscript = "script.json"\n'
    )
    config = configuration(tmp_path, 0, more)
    async with broker(tmp_path) as mosquitto, asker(mosquitto.port) as one:
        config.write_text(config.read_text().replace("127.0.0.1:0", f"127.0.0.1:{mosquitto.port}"))
        async with daemon(config) as running:
            await one.until(lambda: online(one))
            await one.ask(b"1", "go")
            await one.until(lambda: any(b"tool.started" in bytes(m.payload) for m in one.messages))  # type: ignore[arg-type]
            running.process.kill()
            await running.process.wait()
            await one.until(lambda: one.statuses()[-1]["state"] == "offline")
        assert one.answers(b"1") == []
        async with daemon(config):
            await one.until(lambda: one.answers(b"1"))
    [told] = one.answers(b"1")
    assert (told["text"], told["about"]["repeated"]) == ("done", "yes")


@pytest.mark.requirement("NET-6d")
async def test_three_replicas_share_what_is_asked_and_one_of_them_may_stop(tmp_path: Path) -> None:
    names = ("r1", "r2", "r3")
    async with broker(tmp_path) as mosquitto, asker(mosquitto.port) as one:
        files = [configuration(tmp_path, mosquitto.port, name=name) for name in names]
        async with daemon(files[0]) as first, daemon(files[1]), daemon(files[2]):
            await one.until(lambda: all(online(one, name) for name in names))
            spread = await _asked(one, range(60))
            assert [spread.count(name) for name in names] == [20, 20, 20]
            first.process.terminate()
            assert await first.process.wait() == 0
            assert set(await _asked(one, range(60, 80))) == {"r2", "r3"}


async def _asked(one: Asker, numbers: range) -> list[str]:
    keys = [str(number).encode() for number in numbers]
    await asyncio.gather(*(one.ask(key, "hi", events="none") for key in keys))
    await one.until(lambda: all(one.answers(key) for key in keys))
    assert all(len(one.answers(key)) == 1 for key in keys)
    return [one.answers(key)[0]["about"]["replica"] for key in keys]


@pytest.mark.requirement("INT-1")
async def test_a_broker_is_reached_by_tls_and_with_a_password_and_no_other_way(
    tmp_path: Path,
) -> None:
    authority, other = trustme.CA(), trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    other.cert_pem.write_to_path(tmp_path / "other.pem")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "own.pem")
    await user_file(tmp_path / "users", "bot", "good")
    lines = (
        f"password_file {tmp_path}/users\ncertfile {tmp_path}/own.pem\nkeyfile {tmp_path}/own.pem\n"
    )
    async with broker(tmp_path, lines) as mosquitto:

        async def told(name: str, authority: str, password: str, words: str) -> None:
            more = (
                f'tls_ca = "{tmp_path}/{authority}"\n'
                'username = "bot"\npassword = "env:MQ_PASSWORD"\n'
            )
            config = configuration(tmp_path, mosquitto.port, more, name, "mqtts")
            async with daemon(config, MQ_PASSWORD=password) as running:
                if words not in running.log:
                    await running.logged(words)

        await told("r1", "other.pem", "good", "CERTIFICATE_VERIFY_FAILED")
        await told("r2", "ca.pem", "bad", "Not authorized")
        await told("r3", "ca.pem", "good", "connected to the MQTT broker")
