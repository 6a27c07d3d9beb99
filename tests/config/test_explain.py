"""What operators are shown: every key with its value, source and when it acts."""

import pytest

from session_runtime.config.explain import Explanation, explain, explain_section, show
from session_runtime.errors import RequestError
from tests.config.conftest import Reader

TEXT = """\
[models."gpt-4.1"]
model = "m"
base_url = "http://127.0.0.1/v1"
[skills]
tool_search_enabled = false
[runtime]
state_dir = "/var/lib/bot"
"""


@pytest.mark.requirement("CFG-3")
@pytest.mark.requirement("INT-5")
def test_a_value_is_explained_with_its_source_and_what_it_hides(read: Reader) -> None:
    snapshot = read(TEXT, env={"TOOL_SEARCH_ENABLED": "true"})
    assert explain(snapshot, "skills.tool_search_enabled") == Explanation(
        key="skills.tool_search_enabled",
        value=True,
        source="env TOOL_SEARCH_ENABLED",
        shadowed=("config.toml:5",),
        acts="next ask",
    )
    assert explain(snapshot, "runtime.state_dir") == Explanation(
        key="runtime.state_dir",
        value="/var/lib/bot",
        source="config.toml:7",
        shadowed=(),
        acts="restart",
    )
    assert explain(snapshot, "log.level") == Explanation(
        key="log.level", value="info", source="default", shadowed=(), acts="now"
    )


@pytest.mark.requirement("CFG-6")
def test_of_the_trace_only_what_is_read_for_each_ask_acts_without_a_restart(read: Reader) -> None:
    snapshot = read(TEXT)
    keys = ("enabled", "path", "max_bytes", "keep", "content")
    assert {key: explain(snapshot, f"trace.{key}").acts for key in keys} == {
        "enabled": "restart",
        "path": "restart",
        "max_bytes": "restart",
        "keep": "restart",
        "content": "next ask",
    }


@pytest.mark.requirement("INT-5")
def test_a_key_is_explained_in_any_spelling_of_toml(read: Reader) -> None:
    snapshot = read(TEXT)
    written = explain(snapshot, 'models."gpt-4.1".model')
    assert explain(snapshot, "models . 'gpt-4.1' . model") == written
    assert (written.key, written.value) == ('models."gpt-4.1".model', "m")


@pytest.mark.requirement("INT-5")
def test_the_old_spelling_of_notices_is_explained_as_the_new_one(read: Reader) -> None:
    snapshot = read("[easter_egg]\nagent_call_message_enabled = true\n")
    explanation = explain(snapshot, "easter_egg.agent_call_message_enabled")
    assert (explanation.key, explanation.value) == ("notices.mode", "agent")
    assert explanation.source == "config.toml:2"


@pytest.mark.requirement("INT-5")
@pytest.mark.parametrize(
    ("key", "message"),
    [
        (
            "skills.tool_search_enable",
            "no such key: skills.tool_search_enable; did you mean skills.tool_search_enabled?",
        ),
        ("zzz", "no such key: zzz; config show lists all keys"),
        ("skils", "no such key: skils; did you mean skills?"),
        ("models.gtp", "no such key: models.gtp; did you mean models?"),
        ("models.main.headers", "no such key: models.main.headers; config show lists all keys"),
        ('"', 'no such key: "; config show lists all keys'),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(
    read: Reader, key: str, message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        explain(read(), key)
    assert (str(caught.value), caught.value.code) == (message, "config.unknown_key")


@pytest.mark.requirement("INT-5")
@pytest.mark.parametrize(
    ("section", "keys"),
    [
        ("log", ["log.level", "log.format"]),
        ("features", ["features.beta"]),
        ("handlers.entries", []),
        ('models."gpt-4.1".headers', []),
        ("easter_egg", ["notices.mode"]),
    ],
)
def test_a_section_is_explained_key_by_key(read: Reader, section: str, keys: list[str]) -> None:
    snapshot = read(TEXT + "[features]\nbeta = true\n")
    assert explain_section(snapshot, section) == tuple(explain(snapshot, key) for key in keys)


@pytest.mark.requirement("INT-5")
def test_the_section_of_one_entry_has_its_keys_alone(read: Reader) -> None:
    snapshot = read(TEXT + '[models.other]\nwire = "offline"\n')
    shown = explain_section(snapshot, 'models."gpt-4.1"')
    assert shown is not None
    assert [each for each in shown if not each.key.startswith('models."gpt-4.1".')] == []
    assert shown[1] == explain(snapshot, 'models."gpt-4.1".base_url')


@pytest.mark.requirement("INT-5")
@pytest.mark.parametrize("key", ["log.level", "lgo", "models.nope", '"', "features.beta"])
def test_what_is_no_section_is_none(read: Reader, key: str) -> None:
    assert explain_section(read(TEXT), key) is None


@pytest.mark.requirement("INT-5")
def test_everything_is_shown_once_and_can_be_explained(read: Reader) -> None:
    snapshot = read(TEXT + "[features]\nbeta = true\n")
    shown = show(snapshot)
    assert len({explanation.key for explanation in shown}) == len(shown)
    assert [explain(snapshot, explanation.key) for explanation in shown] == list(shown)
    assert {"features.beta", 'models."gpt-4.1".wire'} <= {each.key for each in shown}
