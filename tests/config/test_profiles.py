"""Keys of a model profile: what may be added to its requests, and who takes over for it."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from session_runtime.config.explain import explain, show
from session_runtime.config.json_value import thawed
from session_runtime.config.settings import fallback_faults
from tests.config.conftest import Reader

SECRET = "sk-5tr3ng-geheim"
CHAT = '[models.main]\nmodel = "m"\nbase_url = "http://127.0.0.1/v1"\n'


@pytest.mark.requirement("INT-1b")
def test_a_profile_without_them_adds_nothing_limits_nothing_and_has_no_fallback(
    read: Reader,
) -> None:
    profile = read(CHAT).settings.models["main"]
    added = (dict(profile.headers), dict(profile.extra_body))
    limits = (profile.max_tools, profile.max_concurrency, profile.fallback)
    assert (added, limits) == (({}, {}), (None, 0, None))


@pytest.mark.requirement("CFG-4")
def test_header_values_are_secrets_given_in_any_way_and_never_shown(read: Reader) -> None:
    read.file("token", f"{SECRET}-2\n")
    text = (
        f'{CHAT}[models.main.headers]\napi-key = "env:MAIN_API_KEY"\nX-Token = "file:token"\n'
        f'X-Title = "bot {SECRET}"\n'
        f'[runtime]\nsecret_sources = ["env:*_API_KEY", "file:{read.folder}"]\n'
    )
    env = {
        "MAIN_API_KEY": f"{SECRET}-1",
        "SESSION_RUNTIME__MODELS__MAIN__HEADERS__X_TITLE": f"env {SECRET}",
        "SESSION_RUNTIME__MODELS__MAIN__HEADERS": f'{{"X-More": "{SECRET}"}}',
    }
    snapshot = read(text, env=env)
    assert dict(snapshot.settings.models["main"].headers) == {
        "api-key": SecretStr(f"{SECRET}-1"),
        "X-Token": SecretStr(f"{SECRET}-2"),
        "X-Title": SecretStr(f"env {SECRET}"),
        "X-More": SecretStr(SECRET),
    }
    assert snapshot.files == (read.folder / "token",)
    shown = json.dumps([asdict(explanation) for explanation in show(snapshot)])
    assert SECRET not in f"{snapshot!r} {snapshot.provenance!r} {snapshot.settings!s} {shown}"
    explanation = explain(snapshot, "models.main.headers.X-Title")
    assert (explanation.value, explanation.shadowed) == ("***", ("config.toml:7",))


@pytest.mark.requirement("CFG-4")
def test_the_digest_does_not_depend_on_the_value_of_a_header(read: Reader) -> None:
    one, other = (read(f'{CHAT}headers = {{ X-Y = "{value}" }}\n') for value in ("1", "2"))
    assert one.digest == other.digest
    assert one.settings != other.settings


@pytest.mark.requirement("CFG-4")
def test_only_a_header_whose_name_sounds_secret_earns_a_warning_in_the_file(read: Reader) -> None:
    snapshot = read(f'{CHAT}headers = {{ X-Title = "bot", X-Api-Key = "{SECRET}" }}\n')
    assert [warning.key for warning in snapshot.warnings] == ["models.main.headers.X-Api-Key"]


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    ("headers", "fault"),
    [
        ('"X Y" = "v"', '"X Y": is no name of a header: use letters, digits and -'),
        ('"" = "v"', '"": is no name of a header: use letters, digits and -'),
        ('"X-Ü" = "v"', '"X-Ü": is no name of a header: use letters, digits and -'),
        ('"X\\r\\nY" = "v"', '"X\\r\\nY": is no name of a header: use letters, digits and -'),
        ('hOST = "v"', "hOST: is a header that the runtime sets itself; leave it out"),
        ('Accept = "v"', "Accept: is a header that the runtime sets itself; leave it out"),
        ('X-Y = ""', "X-Y: must not be empty; leave the header out instead"),
        ('X-Y = "a\\r\\nHost: b"', "X-Y: must be printable ASCII on one line"),
        ('X-Y = "a\\u0000"', "X-Y: must be printable ASCII on one line"),
        ('X-Y = "größe"', "X-Y: must be printable ASCII on one line"),
        ('X-Y = " a"', "X-Y: must be printable ASCII on one line"),
        ("X-Y = 1", "X-Y: must be text"),
        ('X-Y = "env:GONE_API_KEY"', "X-Y: the variable GONE_API_KEY is not set"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_by_name(
    read: Reader, headers: str, fault: str
) -> None:
    [problem] = read.problems(f"{CHAT}[models.main.headers]\n{headers}\n")
    assert problem.startswith(f"config.toml:5: models.main.headers.{fault}")


@pytest.mark.requirement("CFG-4")
def test_authorization_is_either_a_header_or_made_of_the_key(read: Reader) -> None:
    text = f'{CHAT}headers = {{ authorization = "env:MAIN_TOKEN" }}\n'
    env = {"MAIN_TOKEN": "Basic abc", "OPENAI_API_KEY": "shared"}
    [problem] = read.problems(text, env=env)
    assert "models.main.headers: cannot hold Authorization beside an api_key" in problem
    assert read(f'{text}api_key = ""\n', env=env).settings.models["main"].api_key is None


@pytest.mark.requirement("CFG-4")
def test_on_the_wire_anthropic_the_key_is_sent_in_a_header_of_its_own(read: Reader) -> None:
    text = (
        '[models.main]\nwire = "anthropic"\nbase_url = "http://x/v1"\nmodel = "m"\n'
        'headers = { Authorization = "env:MAIN_TOKEN", x-api-key = "env:MAIN_TOKEN" }\n'
    )
    env = {"MAIN_TOKEN": "abc", "ANTHROPIC_API_KEY": "shared"}
    [problem] = read.problems(text, env=env)
    assert "cannot hold X-Api-Key beside an api_key" in problem
    assert "ANTHROPIC_API_KEY" in problem
    plain = text.replace(', x-api-key = "env:MAIN_TOKEN"', "")
    key = read(plain, env=env).settings.models["main"].api_key
    assert key is not None
    assert key.get_secret_value() == "shared"


@pytest.mark.requirement("INT-1b")
def test_the_body_may_hold_whatever_json_can_say_and_nobody_can_change_it(read: Reader) -> None:
    text = (
        f'{CHAT}[models.main.extra_body]\ntop_p = 0.9\nseed = 7\nstop = ["a", "b"]\n'
        "parallel_tool_calls = false\n[models.main.extra_body.template]\nthinking = {on = true}\n"
    )
    snapshot = read(text)
    body = snapshot.settings.models["main"].extra_body
    assert {name: thawed(value) for name, value in body.items()} == {
        "top_p": 0.9,
        "seed": 7,
        "stop": ["a", "b"],
        "parallel_tool_calls": False,
        "template": {"thinking": {"on": True}},
    }
    with pytest.raises(TypeError, match="does not support item assignment"):
        body["template"]["thinking"]["on"] = False
    explanation = explain(snapshot, "models.main.extra_body.template")
    assert (explanation.value, explanation.source) == ({"thinking": {"on": True}}, "config.toml:9")
    assert read(text.replace("0.9", "0.8")).digest != snapshot.digest


@pytest.mark.requirement("CFG-2")
def test_the_body_can_be_given_by_variables_as_a_whole_and_by_field(read: Reader) -> None:
    prefix = "SESSION_RUNTIME__MODELS__MAIN__EXTRA_BODY"
    env = {
        prefix: '{"top_k": 1, "stop": ["x"], "Mixed": null}',
        f"{prefix}__TOP_K": "40",
        f"{prefix}__EFFORT": "high",
        f"{prefix}__TEMPLATE": '{"on": [true]}',
    }
    body = read(f"{CHAT}extra_body = {{ seed = 7, top_k = 2 }}\n", env=env)
    assert {
        name: thawed(value) for name, value in body.settings.models["main"].extra_body.items()
    } == {
        "seed": 7,
        "top_k": 40,
        "stop": ["x"],
        "Mixed": None,
        "effort": "high",
        "template": {"on": [True]},
    }


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ("model = 'x'", "model: cannot be added to the body: set the profile's model instead"),
        ("stream = true", "stream: cannot be added to the body: set the profile's stream instead"),
        ("tools = []", "tools: cannot be added to the body: the runtime decides which tools"),
        ("messages = []", "messages: cannot be added to the body: the runtime writes the conv"),
        ("store = true", "store: cannot be added to the body: the runtime decides how turns"),
        ("until = 2026-01-01", "until: must be what JSON can say: texts, finite numbers"),
        ("at = [{t = 10:00:00}]", "at: must be what JSON can say: texts, finite numbers"),
        ("x = nan", "x: must be what JSON can say: texts, finite numbers"),
        (f"{'.'.join('x' * 2_000)} = 1", "x: is nested more than 32 levels deep"),
    ],
)
def test_a_field_that_is_ours_or_no_json_is_refused_with_the_reason(
    read: Reader, field: str, fault: str
) -> None:
    [problem] = read.problems(f"{CHAT}[models.main.extra_body]\n{field}\n")
    assert problem.startswith(f"config.toml:5: models.main.extra_body.{fault}")


@pytest.mark.requirement("CFG-1")
def test_every_wrong_header_and_field_is_reported_at_once(read: Reader) -> None:
    problems = read.problems(
        f'{CHAT}headers = {{ Host = "h", "a b" = "v" }}\nextra_body = {{ input = 1, model = 2 }}\n'
    )
    assert len(problems) == 4


PROFILES = "".join(
    f'[models.{name}]\nwire = "offline"\nfallback = "{other}"\n'
    for name, other in (("main", "backup"), ("backup", "last"))
)


@pytest.mark.requirement("ASK-9b")
def test_a_chain_of_fallbacks_is_fine_when_it_ends(read: Reader) -> None:
    settings = read(f'{PROFILES}[models.last]\nwire = "offline"\n').settings
    assert [profile.fallback for profile in settings.models.values()] == ["backup", "last", None]


@pytest.mark.requirement("ASK-9b")
def test_an_unknown_fallback_is_refused_with_the_nearest_name_and_a_circle_with_its_way(
    read: Reader,
) -> None:
    text = f'{PROFILES}[models.last]\nwire = "offline"\nfallback = "main"\n[models.lost]\n'
    text += 'wire = "offline"\nfallback = "bakcup"\n[models.self]\nwire = "offline"\n'
    assert read.problems(f'{text}fallback = "self"\n') == [
        "config.toml:3: models.main.fallback: leads back to the profile itself"
        " (main -> backup -> last -> main); leave one of these out",
        "config.toml:12: models.lost.fallback: no profile of [models] has this name"
        " (given: \"bakcup\"); did you mean 'backup'?",
        "config.toml:15: models.self.fallback: leads back to the profile itself"
        " (self -> self); leave one of these out",
    ]


NAMES = "abcdef"


@pytest.mark.requirement("ASK-9b")
@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(NAMES)))
def test_fallbacks_without_a_fault_always_come_to_an_end(fallbacks: dict[str, Any]) -> None:
    faults = dict(fallback_faults(fallbacks, NAMES))
    endless = set()
    for start in fallbacks:
        name, steps = start, 0
        while name in fallbacks and steps <= len(NAMES):
            name, steps = fallbacks[name], steps + 1
        if name in fallbacks:
            endless.add(start)
    assert bool(faults) == bool(endless)
    assert faults.keys() <= endless


@pytest.mark.requirement("INT-1b")
@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ("/chat/completions", "must end before /chat/completions, which is added to it"),
        ("/responses/", "must end before /responses, which is added to it"),
    ],
)
def test_an_address_holds_nothing_that_the_runtime_adds(
    read: Reader, ending: str, reason: str
) -> None:
    text = f'[models.main]\nmodel = "m"\nbase_url = "http://127.0.0.1/v1{ending}"\n'
    (problem,) = read.problems(text)
    assert problem.startswith(f"config.toml:3: models.main.base_url: {reason}")


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize("value", ["abc€", "ключ", "a\nb", "a b\t"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(
    read: Reader, value: str
) -> None:
    (problem,) = read.problems(f'{CHAT}api_key = "env:FOO_API_KEY"\n', env={"FOO_API_KEY": value})
    assert problem == (
        "config.toml:4: models.main.api_key: must be printable ASCII on one line, without blanks at its "
        "beginning and end (given: ***)"
    )
