"""The settings as a value: defaults, immutability, profiles, and the old spelling of notices."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from session_runtime.config.models import ModelProfile
from session_runtime.config.settings import Settings, default_profile, profiles
from session_runtime.config.shape import leaves
from session_runtime.config.snapshot import values_of
from session_runtime.errors import ConfigError
from tests.config.conftest import Reader

FULL = """\
[models.main]
model = "m"
base_url = "http://127.0.0.1/v1"
api_key = "env:MAIN_API_KEY"
[models.off]
wire = "offline"
[handlers]
paths = ["tools"]
[access.rules.guests]
roles = ["guest"]
deny = ["files.*"]
[features]
beta = true
"""


OTHER_DEFAULTS = {
    "runtime.name": "session-runtime",
    "runtime.secret_sources": (
        "env:*_API_KEY",
        "env:*_TOKEN",
        "env:*_SECRET",
        "env:*_PASSWORD",
        "file:/run/secrets",
    ),
    "runtime.max_concurrent_asks": 256,
    "runtime.max_concurrent_asks_per_principal": None,
    "runtime.max_waiting_asks": 256,
    "runtime.max_waiting_asks_in_all": 512,
    "runtime.ask_timeout_s": 300.0,
    "runtime.drain_timeout_s": 30.0,
    "runtime.watch": "events",
    "runtime.recheck_s": 5.0,
    "limits.asks_per_minute": None,
    "limits.tokens_per_day": None,
    "limits.user_asks_per_minute": None,
    "limits.user_tokens_per_day": None,
    "limits.user_max_concurrent_asks": None,
    "log.level": "info",
    "log.format": "text",
    "ask.default_model": None,
    "ask.system_prompt": "",
    "ask.prompt_file": None,
    "ask.conversations": "queue",
    "ask.require_end": False,
    "ask.missing_tool_call_retries": 3,
    "ask.max_steps": 32,
    "ask.max_tool_calls": 64,
    "ask.max_total_tokens": 0,
    "ask.history_tokens": None,
    "ask.max_result_chars": 20000,
    "mcp.wait_s": 10.0,
    "handlers.paths": (),
    "handlers.plugins": (),
    "handlers.bundled": True,
    "handlers.enabled": (),
    "handlers.disabled": (),
    "handlers.timeout_s": 120.0,
    "skills.prefetch_tools": ("get_current_time",),
    "skills.prefetch_tools_hide": True,
    "skills.prefetch_timeout_s": 5.0,
    "search.name": 3.5,
    "search.namespace": 2.0,
    "search.aliases": 3.5,
    "search.hints": 2.0,
    "search.description": 1.2,
    "search.parameters": 0.9,
    "search.parameter_descriptions": 0.6,
    "search.enums": 0.8,
    "search.synonym_share": 0.35,
    "search.translation_share": 0.65,
    "search.saturation": 1.9,
    "search.rarity": 0.75,
    "search.synonyms": (),
    "access.default": "allow",
    "access.destructive": "confirm",
    "access.confirm_ttl_s": 600.0,
    "notices.mode": "none",
    "files.max_read_bytes": 1024 * 1024,
    "files.max_write_bytes": 1024 * 1024,
    "files.max_entries": 10_000,
    "web.enabled": False,
    "web.timeout_s": 20.0,
    "web.max_bytes": 2 * 1024 * 1024,
    "web.max_redirects": 5,
    "web.max_concurrent": 8,
    "web.ports": (80, 443),
    "web.allow_hosts": (),
    "web.deny_hosts": (),
    "web.allow_networks": (),
    "notes.enabled": True,
    "notes.max_notes": 1000,
    "notes.max_chars": 4000,
    "http.host": "127.0.0.1",
    "http.port": 8040,
    "http.max_body_bytes": 10 * 1024 * 1024,
    "http.mcp": False,
    "agents.max_depth": 2,
    "http.invoke.enabled": False,
    "http.invoke.allow": (),
    "http.invoke.deny": (),
    "http.invoke.max_result_chars": 200_000,
    "mqtt.enabled": False,
    "mqtt.url": "mqtt://127.0.0.1:1883",
    "mqtt.tls_ca": None,
    "mqtt.tls_cert": None,
    "mqtt.tls_key": None,
    "mqtt.username": None,
    "mqtt.password": None,
    "mqtt.prefix": "session-runtime",
    "mqtt.group": "replicas",
    "mqtt.client_id": None,
    "mqtt.keepalive_s": 30,
    "mqtt.session_expiry_s": 0,
    "mqtt.max_payload_bytes": 1_000_000,
    "mqtt.dedupe_window_s": 600.0,
    "mqtt.dedupe_window_asks": 65536,
    "mqtt.dedupe_window_bytes": 33554432,
    "mqtt.max_signed_s": 300.0,
    "fleet.urls": (),
    "fleet.admin_from": None,
    "otel.enabled": False,
    "otel.endpoint": "http://127.0.0.1:4318/v1/traces",
    "otel.content": False,
    "otel.sample": 1.0,
    "otel.timeout_s": 10.0,
    "trace.enabled": True,
    "trace.max_bytes": 64 * 1024 * 1024,
    "trace.keep": 5,
    "trace.content": False,
    "metrics.enabled": True,
    "audit.enabled": True,
    "audit.path": None,
    "audit.max_bytes": 64 * 1024 * 1024,
    "audit.keep": 30,
    "audit.on_error": "refuse_destructive",
}


def parts(value: object) -> Iterator[object]:
    """The value and everything inside it."""
    yield value
    match value:
        case BaseModel():
            for _, inner in value:
                yield from parts(inner)
        case Mapping():
            for inner in value.values():
                yield from parts(inner)
        case tuple():
            for inner in value:
                yield from parts(inner)


@pytest.mark.requirement("CFG-5")
def test_tool_search_and_prefetch_have_their_known_defaults(read: Reader) -> None:
    skills = read().settings.skills
    assert (
        skills.tool_search_enabled,
        skills.tool_search_always_loaded,
        skills.tool_search_max_results,
        skills.prefetch_tools,
        skills.prefetch_tools_hide,
    ) == (False, ("send_message", "end"), 5, ("get_current_time",), True)


@pytest.mark.requirement("INT-1")
def test_the_sections_and_keys_keep_their_names_and_defaults(read: Reader) -> None:
    settings = read().settings
    defaults = {".".join(path): value for path, value in values_of(settings).items()}
    others = {key: value for key, value in defaults.items() if not key.startswith("skills.tool_")}
    state = read.folder / ".session-runtime"
    assert others == {
        "runtime.state_dir": state,
        "trace.path": state / "trace.jsonl",
        **OTHER_DEFAULTS,
    }


@pytest.mark.requirement("INT-1b")
@pytest.mark.requirement("INT-1c")
@pytest.mark.parametrize(
    ("table", "names"),
    [
        (
            ("models", "a"),
            "wire base_url api_key model context_window supports_tool_search call_mode name_separator"
            " max_tools temperature max_output_tokens timeout_s max_retries max_concurrency fallback script",
        ),
        (
            ("mcp", "servers", "a"),
            "enabled command args cwd url connect_timeout_s list_timeout_s idle_timeout_s hard_timeout_s"
            " max_concurrency rate_per_minute refresh_ttl_s naming group priority",
        ),
        (("access", "rules", "a"), "roles users channels allow deny"),
        (("http", "keys", "a"), "hash roles act_for"),
    ],
)
def test_the_keys_of_tables_keep_their_names(table: tuple[str, ...], names: str) -> None:
    keys = {path[-1] for path, _ in leaves([table]) if path[:-1] == table}
    assert keys >= set(names.split())


@pytest.mark.requirement("CFG-1")
def test_nothing_in_the_settings_can_be_changed(read: Reader) -> None:
    settings = read(FULL, env={"MAIN_API_KEY": "k"}).settings
    kinds = (BaseModel, tuple, str, int, float, Path, SecretStr, type(None))
    for part in parts(settings):
        if isinstance(part, Mapping):
            with pytest.raises(TypeError, match="does not support item assignment"):
                part["new"] = 1  # type: ignore[index]
        else:
            assert isinstance(part, kinds)
        if isinstance(part, BaseModel):
            with pytest.raises(ValidationError, match="frozen"):
                setattr(part, next(iter(type(part).model_fields)), None)


@pytest.mark.requirement("CFG-1")
def test_the_models_refuse_unknown_keys_and_other_types_by_themselves() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Settings(skils={})
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Settings(SKILLS={})
    with pytest.raises(ValidationError, match="valid integer"):
        Settings(ask={"max_steps": "8"})


@pytest.mark.requirement("CFG-2")
def test_the_environment_of_the_process_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLS", '{"tool_search_enabled": true}')
    monkeypatch.setenv("skills__tool_search_enabled", "true")
    assert Settings().skills.tool_search_enabled is False


@pytest.mark.requirement("INT-1")
def test_without_models_the_built_in_profile_answers(read: Reader) -> None:
    settings = read().settings
    assert profiles(settings) == {"offline": ModelProfile(wire="offline")}
    assert default_profile(settings) == "offline"


@pytest.mark.requirement("INT-1")
def test_the_first_profile_of_the_file_is_the_default(read: Reader) -> None:
    env = {"MAIN_API_KEY": "k", "SESSION_RUNTIME__MODELS__OFF__TIMEOUT_S": "1"}
    settings = read(FULL, env=env).settings
    assert tuple(profiles(settings)) == ("main", "off")
    assert default_profile(settings) == "main"


@pytest.mark.requirement("INT-1")
def test_the_default_profile_may_be_named_and_must_exist(read: Reader) -> None:
    env = {"MAIN_API_KEY": "k"}
    named = {"ask.default_model": "off"}
    assert default_profile(read(FULL, env=env, explicit=named).settings) == "off"
    unnamed = Settings(ask={"default_model": "other"})
    with pytest.raises(ConfigError, match='given: "other"\\); there is offline'):
        default_profile(unnamed)


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize(
    ("old", "mode"),
    [
        ("true", "agent"),
        ("false", "none"),
        ('"yes"', "agent"),
        ('"Off"', "none"),
        ('"clean"', "clean"),
        ('"ALL"', "all"),
    ],
)
def test_the_old_spelling_of_notices_still_works(read: Reader, old: str, mode: str) -> None:
    snapshot = read(f"[easter_egg]\nagent_call_message_enabled = {old}\n")
    assert snapshot.settings.notices.mode == mode


@pytest.mark.requirement("CFG-5")
def test_the_old_spelling_works_as_a_variable_too(read: Reader) -> None:
    env = {"SESSION_RUNTIME__EASTER_EGG__AGENT_CALL_MESSAGE_ENABLED": "1"}
    assert read('[notices]\nmode = "all"\n', env=env).settings.notices.mode == "agent"


@pytest.mark.requirement("CFG-5")
def test_both_spellings_of_notices_must_mean_the_same(read: Reader) -> None:
    text = '[notices]\nmode = "{}"\n[easter_egg]\nagent_call_message_enabled = true\n'
    assert read(text.format("agent")).settings.notices.mode == "agent"
    assert read.problems(text.format("all")) == [
        "config.toml:4: easter_egg.agent_call_message_enabled:"
        " says something else than notices.mode; remove one of them"
    ]


@pytest.mark.requirement("CFG-5")
@pytest.mark.parametrize("old", ['"sometimes"', "1", '""'])
def test_an_old_spelling_that_means_nothing_is_refused(read: Reader, old: str) -> None:
    assert read.problems(f"[easter_egg]\nagent_call_message_enabled = {old}\n") == [
        "config.toml:2: easter_egg.agent_call_message_enabled: must be"
        f" 'none', 'agent', 'tools', 'clean' or 'all' (given: {old})"
    ]


@pytest.mark.requirement("INT-1")
@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_the_http_door_may_listen_on_any_loopback_address(read: Reader, host: str) -> None:
    assert read(f'[http]\nhost = "{host}"\n').settings.http.host == host


@pytest.mark.requirement("INT-1")
@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.", "127.1"]
)
def test_the_http_door_listens_nowhere_else(read: Reader, host: str) -> None:
    [problem] = read.problems(f'[http]\nhost = "{host}"\n')
    assert problem.startswith("config.toml:2: http.host: callers need no key, so only a loopback")
