"""The configuration page and the configuration file that come with the project."""

import re
from pathlib import Path

import pytest

from session_runtime.config.document import render
from session_runtime.config.load import load
from session_runtime.config.settings import Settings, default_profile
from session_runtime.config.shape import OLD_NOTICES, leaves
from session_runtime.config.snapshot import values_of

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "models.main",
    "access.rules.guests",
    "features.beta",
    "files.roots.shared",
    "mcp.servers.files",
    "callbacks.bot",
}
MQTT = {
    f"mqtt.{name}"
    for name in ("tls_ca", "tls_cert", "tls_key", "username", "password", "client_id")
}
LIMITS = {
    f"limits.{name}"
    for name in (
        *("asks_per_minute", "tokens_per_day", "user_asks_per_minute", "user_tokens_per_day"),
        "user_max_concurrent_asks",
    )
}
UNSET = {
    "ask.default_model",
    "ask.history_tokens",
    "ask.prompt_file",
    "audit.path",
    "runtime.max_concurrent_asks_per_principal",
    "trace.path",
    *LIMITS,
    *MQTT,
}


@pytest.mark.requirement("CFG-6")
def test_the_configuration_page_is_what_the_models_say() -> None:
    assert (ROOT / "docs" / "configuration.md").read_bytes() == render().encode()


@pytest.mark.requirement("CFG-6")
def test_every_key_is_on_the_page_with_the_moment_it_acts() -> None:
    page = render()
    entry = ("handlers", "entries", "NAME")
    tables = [
        ("models", "NAME"),
        ("access", "rules", "NAME"),
        entry,
        (*entry, "parameters", "NAME"),
        ("http", "keys", "NAME"),
        ("callbacks", "NAME"),
    ]
    for path, leaf in leaves(tables):
        section = page.split(f"\n## [{'.'.join(path[:-1])}]\n")[1].partition("\n## ")[0]
        row = re.search(rf"^\| `{path[-1]}` \|.*$", section, re.MULTILINE)
        assert row is not None
        assert f"| {leaf.acts} |" in row[0]


@pytest.mark.requirement("CFG-6")
def test_only_logging_doors_and_limits_of_the_daemon_act_at_once() -> None:
    at_once = {".".join(path) for path, leaf in leaves(()) if leaf.acts == "now"}
    assert at_once == {
        "http.mcp",
        "http.invoke.enabled",
        "http.invoke.allow",
        "http.invoke.deny",
        "http.invoke.max_result_chars",
        "log.level",
        "log.format",
        "runtime.max_concurrent_asks",
        "runtime.max_concurrent_asks_per_principal",
        "runtime.max_waiting_asks",
        "runtime.max_waiting_asks_in_all",
        *LIMITS,
        "runtime.drain_timeout_s",
    }


@pytest.mark.requirement("CFG-5")
def test_the_configuration_file_turns_tool_search_on_and_needs_no_network() -> None:
    snapshot = load(ROOT / "config.toml", named=True, env={})
    changed = {
        path
        for path, candidates in snapshot.provenance.items()
        if candidates[0].origin.kind != "default"
    }
    assert changed == {("skills", "tool_search_enabled")}
    assert snapshot.settings.skills.tool_search_enabled is True
    assert default_profile(snapshot.settings) == "offline"
    assert snapshot.warnings == ()


@pytest.mark.requirement("CFG-5")
def test_what_the_configuration_file_comments_out_are_the_defaults(tmp_path: Path) -> None:
    text = (ROOT / "config.toml").read_text("utf-8")
    path = tmp_path / "config.toml"
    path.write_text(re.sub(r"^#(?=[\[a-z])", "", text, flags=re.MULTILINE), "utf-8")
    secret = f"whsec_{'QUJD' * 10}"
    env = {"MAIN_API_KEY": "k", "BOT_CALLBACK_SECRET": secret, "COLLECTOR_TOKEN": "k"}
    snapshot = load(path, named=True, env=env)
    mcp = snapshot.settings.mcp.model_copy(update={"servers": {}})
    settings = snapshot.settings.model_copy(
        update={"models": {}, "features": {}, "mcp": mcp, "callbacks": {}}
    )
    given = {
        ".".join(path): candidates
        for path, candidates in snapshot.provenance.items()
        if path != OLD_NOTICES and not ".".join(path).startswith(tuple(EXAMPLES))
    }
    missing = {key for key, candidates in given.items() if candidates[0].origin.kind == "default"}
    assert missing == UNSET
    assert differing(load(ROOT / "config.toml", named=False, env={}).settings, settings) == {
        ("runtime", "state_dir"),
        ("trace", "path"),
        ("fleet", "admin_from"),  # examples, as without them nothing is sent
        ("otel", "headers", "Authorization"),
    }


def differing(one: Settings, other: Settings) -> set[tuple[str, ...]]:
    """Keys whose values differ, leaving out the examples of a rule and of a root."""
    first, second = values_of(one), values_of(other)
    return {
        path
        for path in first.keys() | second.keys()
        if path[:2] not in {("access", "rules"), ("files", "roots")}
        and first.get(path) != second.get(path)
    }
