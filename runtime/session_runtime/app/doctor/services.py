"""What a daemon needs of others: its models and its servers of tools.

Asked over the network only where the operator wants that, but for whether an address can be reached.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from urllib.parse import urlsplit

from session_runtime.app.doctor.finding import Finding, Verdict
from session_runtime.app.runtime import Runtime
from session_runtime.config.addresses import broker_address
from session_runtime.config.models import SHARED_KEYS, ModelProfile
from session_runtime.config.settings import Settings, profiles
from session_runtime.errors import PermanentError, SessionRuntimeError
from session_runtime.generation import Profile
from session_runtime.models.base import ModelRequest
from session_runtime.trace.redact import redact_text
from session_runtime.types import Message
from session_runtime.wire.hosts import is_loopback

REACH_S = 3.0
REPLY_S = 30.0
_PORTS = {"http": 80, "https": 443}


async def reachable(settings: Settings) -> AsyncIterator[Finding]:
    """Whether each model's address, and the broker's, can be connected to; nothing is sent."""
    found = profiles(settings)
    for findings in await asyncio.gather(*(_reach(name, found[name]) for name in found)):
        for finding in findings:
            yield finding
    if settings.mqtt.enabled:
        yield await _broker(settings.mqtt.url)


async def _broker(url: str) -> Finding:
    address = broker_address(url)
    where = f"{address.host}:{address.port}"
    if (why := await _trouble(address.host, address.port)) is None:
        return Finding("mqtt", "ok", f"{where} can be reached")
    do = "start the broker, or mend mqtt.url; look at firewall and name server"
    return Finding("mqtt", "fail", f"{where} cannot be reached: {why}", do)


async def _trouble(host: str, port: int) -> str | None:
    """Why nothing can be connected to there; None: it can."""
    try:
        async with asyncio.timeout(REACH_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError) as error:
        return str(error) or type(error).__name__
    writer.close()
    return None


def _check_of(model: str) -> str:
    return f"model {model}"


async def _reach(name: str, profile: ModelProfile) -> list[Finding]:
    check = _check_of(name)
    if profile.base_url is None:
        return [Finding(check, "ok", f"wire {profile.wire} needs no network")]
    address = urlsplit(profile.base_url)
    host, port = address.hostname or "", address.port or _PORTS[address.scheme.lower()]
    if (why := await _trouble(host, port)) is not None:
        do = f"start it, or mend models.{name}.base_url; look at firewall and name server"
        return [Finding(check, "fail", f"{host}:{port} cannot be reached: {why}", do)]
    return [Finding(check, "ok", f"{host}:{port} can be reached"), *_key(name, profile, host)]


def _key(name: str, profile: ModelProfile, host: str) -> Iterator[Finding]:
    if profile.api_key is None and not profile.headers and not is_loopback(host):
        shared = SHARED_KEYS.get(profile.wire, "")
        yield Finding(
            f"model {name}",
            "warn",
            "no key is sent",
            f'set models.{name}.api_key = "env:NAME" or the variable {shared}, unless it needs none',
        )


async def connected(runtime: Runtime, told: Collection[str]) -> AsyncIterator[Finding]:
    """What each model answers to a minimal request, and what each server lists.

    Models whose checks have ``told`` already that they cannot be reached are left out.
    """
    models = runtime.generation.profiles.values()
    asked = [
        each
        for each in models
        if each.settings.base_url is not None and _check_of(each.name) not in told
    ]
    for finding in await asyncio.gather(*map(_asked, asked)):
        yield finding
    for server in runtime.generation.servers.status():
        for session in (server, *server.get("credentials", ())):
            if "state" in session:
                yield _server(str(server["name"]), session)


async def _asked(profile: Profile) -> Finding:
    check = _check_of(profile.name)
    request = ModelRequest((Message("user", "Say ok."),), (), profile.names)
    try:
        async with asyncio.timeout(REPLY_S):
            reply = await profile.model.reply(request, lambda _: None)
    except TimeoutError:
        return Finding(check, "warn", f"it did not answer within {REPLY_S:g} s", "look at its load")
    except SessionRuntimeError as error:
        verdict: Verdict = "fail" if isinstance(error, PermanentError) else "warn"
        told = redact_text(f"a minimal request failed: {error} ({error.code})")
        do = f"see {error.code} in docs/errors.md"
        if error.code == "model.unauthorized":
            do += f"; the key is models.{profile.name}.api_key"
        return Finding(check, verdict, told, do)
    used = 0 if reply.usage is None else reply.usage.total_tokens
    return Finding(check, "ok", f"it answered a minimal request, for {used} tokens")


def _server(name: str, session: dict[str, object]) -> Finding:
    check = f"server {name}"
    if session["state"] == "ready":
        return Finding(check, "ok", f"it lists {session.get('tools')} tools")
    why = redact_text(str(session.get("error") or session.get("trouble") or "it did not say why"))
    return Finding(
        check,
        "fail",
        f"it cannot be called: {why}",
        f"session-runtime tools logs {name} has its output",
    )
