"""Secrets: the ways to give one, the places that may be asked, and that none is ever shown."""

import json
from dataclasses import asdict

import pytest
from pydantic import SecretStr

from session_runtime.config.changes import changes
from session_runtime.config.explain import explain, show
from session_runtime.config.secrets import address_secrets, masked_address
from session_runtime.config.snapshot import ConfigSnapshot
from tests.config.conftest import Reader

SECRET = "sk-5tr3ng-geheim"
CHAT = '[models.main]\nmodel = "m"\nbase_url = "http://127.0.0.1/v1"\n'


def key_of(snapshot: ConfigSnapshot) -> str | None:
    key = snapshot.settings.models["main"].api_key
    return None if key is None else key.get_secret_value()


def everything_shown(snapshot: ConfigSnapshot) -> str:
    shown = json.dumps([asdict(explanation) for explanation in show(snapshot)])
    warnings = [str(warning) for warning in snapshot.warnings]
    return f"{snapshot!r} {snapshot.provenance!r} {snapshot.settings!s} {shown} {warnings}"


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    ("text", "env", "source", "value"),
    [
        (
            'api_key = "env:MAIN_API_KEY"',
            {"MAIN_API_KEY": SECRET},
            "config.toml:4",
            "env:MAIN_API_KEY",
        ),
        ('api_key = "file:key"', {}, "config.toml:4", "file:key"),
        ("", {"SESSION_RUNTIME__MODELS__MAIN__API_KEY": SECRET}, None, "***"),
        ("", {"SESSION_RUNTIME__MODELS__MAIN__API_KEY_FILE": "key"}, "file {folder}/key", "***"),
        ("", {"OPENAI_API_KEY": SECRET}, "env OPENAI_API_KEY", "***"),
        ("", {"OPENAI_API_KEY_FILE": "key"}, "file {folder}/key", "***"),
        (f'api_key = "{SECRET}"', {}, "config.toml:4", "***"),
    ],
)
def test_a_secret_may_be_given_in_several_ways_and_is_never_shown(
    read: Reader, text: str, env: dict[str, str], source: str | None, value: str
) -> None:
    read.file("key", f"{SECRET}\n")
    sources = f'[runtime]\nsecret_sources = ["env:*_API_KEY", "file:{read.folder}"]\n'
    snapshot = read(f"{CHAT}{text}\n{sources}", env=env)
    explanation = explain(snapshot, "models.main.api_key")
    assert key_of(snapshot) == SECRET
    assert explanation.value == value
    if source is not None:
        assert explanation.source == source.format(folder=read.folder)
    assert SECRET not in everything_shown(snapshot)


@pytest.mark.requirement("CFG-4")
def test_a_secret_in_the_file_works_and_earns_a_warning(read: Reader) -> None:
    snapshot = read(f'{CHAT}api_key = "{SECRET}"\n')
    assert [str(warning) for warning in snapshot.warnings] == [
        "config.toml:4: models.main.api_key: the secret itself is in the file;"
        ' write "env:NAME" or "file:/path" instead'
    ]


@pytest.mark.requirement("CFG-2")
def test_a_shared_key_serves_only_profiles_without_one_of_their_own(read: Reader) -> None:
    text = (
        f'{CHAT}[models.own]\nmodel = "m"\nbase_url = "http://x"\napi_key = "env:OWN_API_KEY"\n'
        '[models.none]\nmodel = "m"\nbase_url = "http://x"\napi_key = ""\n'
        '[models.other]\nwire = "responses"\nmodel = "m"\nbase_url = "http://x"\n'
        '[models.off]\nwire = "offline"\n'
    )
    env = {"OPENAI_API_KEY": "shared", "OWN_API_KEY": "own"}
    models = read(text, env=env).settings.models
    keys = {name: profile.api_key for name, profile in models.items()}
    assert keys == {
        "main": SecretStr("shared"),
        "own": SecretStr("own"),
        "none": None,
        "other": SecretStr("shared"),
        "off": None,
    }


@pytest.mark.requirement("CFG-2")
def test_a_shared_key_in_the_environment_hides_one_in_a_file_and_in_dotenv(read: Reader) -> None:
    read.file("key", "from file")
    dotenv = "OPENAI_API_KEY=from .env\n"
    env = {"OPENAI_API_KEY_FILE": "key"}
    assert key_of(read(CHAT, dotenv=dotenv)) == "from .env"
    assert key_of(read(CHAT, env=env, dotenv=dotenv)) == "from file"
    assert key_of(read(CHAT, env={**env, "OPENAI_API_KEY": "direct"}, dotenv=dotenv)) == "direct"


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    ("reference", "fault"),
    [
        ("env:HOME", "env:HOME is not allowed by runtime.secret_sources"),
        ("env:GONE_API_KEY", "the variable GONE_API_KEY is not set"),
        ("env:EMPTY_API_KEY", "the variable EMPTY_API_KEY is not set"),
        ("file:outside", "file:{folder}/outside is not allowed by runtime.secret_sources"),
        ("file:secrets/../outside", "is not allowed by runtime.secret_sources"),
        ("file:secrets/link", "file:{folder}/secrets/link is not allowed"),
        ("file:secrets/gone", "there is no file {folder}/secrets/gone"),
        ("file:secrets", "there is no file {folder}/secrets"),
        ("file:a\\u0000b", "is no usable path"),
    ],
)
def test_a_reference_reads_only_what_is_allowed_and_there(
    read: Reader, reference: str, fault: str
) -> None:
    (read.folder / "secrets").mkdir()
    outside = read.file("outside", SECRET)
    (read.folder / "secrets" / "link").symlink_to(outside)
    text = (
        f'{CHAT}api_key = "{reference}"\n'
        f'[runtime]\nsecret_sources = ["env:*_API_KEY", "file:{read.folder}/secrets"]\n'
    )
    [problem] = read.problems(text, env={"HOME": SECRET, "EMPTY_API_KEY": ""})
    assert problem.startswith("config.toml:4: models.main.api_key: ")
    assert fault.format(folder=read.folder) in problem
    assert SECRET not in problem


@pytest.mark.requirement("CFG-4")
def test_a_swapped_folder_of_secrets_is_followed_within_the_allowed_one(read: Reader) -> None:
    folder = read.folder / "secrets"
    (folder / "..v1").mkdir(parents=True)
    (folder / "..v1" / "key").write_text(SECRET)
    (folder / "..data").symlink_to("..v1")
    (folder / "key").symlink_to("..data/key")
    snapshot = read(
        f'{CHAT}api_key = "file:secrets/key"\n[runtime]\nsecret_sources = ["file:{folder}"]\n'
    )
    assert key_of(snapshot) == SECRET
    assert snapshot.files == (folder / "key",)


@pytest.mark.requirement("CFG-4")
def test_variables_of_a_dotenv_file_can_be_referred_to(read: Reader) -> None:
    snapshot = read(f'{CHAT}api_key = "env:MAIN_API_KEY"\n', dotenv=f"MAIN_API_KEY={SECRET}\n")
    assert key_of(snapshot) == SECRET


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    ("text", "env"),
    [
        (f'{CHAT}api_key = ["{SECRET}"]', {}),
        (f'{CHAT}api_kye = "{SECRET}"', {}),
        (f'{CHAT}secret_key = "{SECRET}"', {}),
        (f'{CHAT}model_key = "{SECRET}"', {}),
        (f'{CHAT}header = {{ Authorization = "{SECRET}" }}', {}),
        (f'{CHAT}headers = {{ "X Y" = "{SECRET}" }}', {}),
        (f'{CHAT}headers = {{ X-Y = "{SECRET}\\n" }}', {}),
        (f'{CHAT}headers = {{ X-Y = ["{SECRET}"] }}', {}),
        (f'{CHAT}headers = {{ Authorization = "{SECRET}" }}\napi_key = "{SECRET}"', {}),
        (f'[moddels.main]\napi_key = "{SECRET}"', {}),
        (f'[models.main]\nmodel = "m"\nbase_url = "http://user:{SECRET}@host"', {}),
        (f'[models.main]\nmodel = "m"\nbase_url = "http://user:a/{SECRET}@host"', {}),
        (f'[models.main]\nmodel = "m"\nbase_url = "user:{SECRET}@host"', {}),
        (f'[models.main]\napi_key = "{SECRET}', {}),
        (CHAT, {"SESSION_RUNTIME__MODELS__MAIN": f'{{"api_key": "{SECRET}"'}),
        (CHAT, {"SESSION_RUNTIME__MODELS__MAIN": f'{{"api_key": ["{SECRET}"]}}'}),
        (CHAT, {"SESSION_RUNTIME__MODELS__MAIN__API_KEY": f"env:{SECRET[:3]}", "x": SECRET}),
    ],
)
def test_no_message_holds_a_secret(read: Reader, text: str, env: dict[str, str]) -> None:
    problems = read.problems(text, env=env)
    assert problems
    assert SECRET not in " ".join(problems)


@pytest.mark.requirement("CFG-4")
def test_the_digest_tells_whether_there_is_a_secret_but_not_which(read: Reader) -> None:
    variable = "SESSION_RUNTIME__MODELS__MAIN__API_KEY"
    without, one, other = (
        read(CHAT, env=env) for env in ({}, {variable: SECRET}, {variable: "other"})
    )
    assert one.digest == other.digest != without.digest
    assert one.settings != other.settings


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("key=v3ry", "key=***"),
        ("api-version=2024-10-21&api-key=v3ry", "api-version=2024-10-21&api-key=***"),
        ("code=v3ry&sig=v3ry&se=2026", "code=***&sig=***&se=2026"),
        ("access_token=v3ry;x=1", "access_token=***"),
        ("Client%5FSecret=v3ry&userPwd=v3ry&AUTH=v3ry", "Client%5FSecret=***&userPwd=***&AUTH=***"),
        (
            "subscription-key=&model=m&code=49",
            "subscription-key=&model=m&code=***",
        ),
        ("jwt=v3ry&bearer=v3ry&sessionid=v3ry", "jwt=***&bearer=***&sessionid=***"),
        (
            "cred=v3ry&X-Amz-Signature=v3ry&accessId=v3ry",
            "cred=***&X-Amz-Signature=***&accessId=***",
        ),
        ("v3ry", "***"),
        ("token=v3ry#v3ry", "token=***#***"),
        ("design=big&monkey", "design=big&***"),
    ],
)
def test_secrets_in_the_query_of_an_address_are_masked(
    read: Reader, query: str, shown: str
) -> None:
    address = "https://models.example/v1"
    snapshot = read(f'[models.main]\nmodel = "m"\nbase_url = "{address}?{query}"\n')
    assert explain(snapshot, "models.main.base_url").value == f"{address}?{shown}"
    assert "v3ry" not in everything_shown(snapshot)
    assert snapshot.settings.models["main"].base_url == f"{address}?{query}"


@pytest.mark.requirement("CFG-4")
def test_the_digest_does_not_change_with_a_secret_in_an_address(read: Reader) -> None:
    text = '[models.main]\nmodel = "m"\nbase_url = "https://h/v1?key={}&v={}"\n'
    one, rotated, other = (read(text.format(*each)) for each in ((1, 1), (2, 1), (1, 2)))
    assert one.digest == rotated.digest != other.digest
    assert one.settings != rotated.settings


BODY = """[models.main.extra_body]
user_token = "v3ry"
plain = "//h/v1?api_key=v3ry"
safe = "x"
[models.main.extra_body.service]
name = "n"
login = [{user = "u", password = "v3ry", auth = ["v3ry"]}]
"""


@pytest.mark.requirement("CFG-4")
def test_what_sounds_secret_in_the_fields_of_a_body_is_masked(read: Reader) -> None:
    snapshot = read(CHAT + BODY)
    shown = {
        explanation.key.rpartition(".")[2]: explanation.value
        for explanation in show(snapshot)
        if explanation.key.startswith("models.main.extra_body.")
    }
    assert shown == {
        "user_token": "***",
        "plain": "//h/v1?api_key=***",
        "safe": "x",
        "service": {"name": "n", "login": [{"user": "u", "password": "***", "auth": ["***"]}]},
    }
    assert "v3ry" not in everything_shown(snapshot)


@pytest.mark.requirement("CFG-4")
def test_a_receipt_tells_that_such_a_field_changed_and_not_to_what(read: Reader) -> None:
    old, new = read(CHAT + BODY), read(CHAT + BODY.replace("v3ry", "an0ther"))
    found = changes(old, new)
    assert [change.key.rpartition(".")[2] for change in found] == ["user_token", "plain", "service"]
    assert all(change.old == change.new for change in found)
    assert old.digest == new.digest
    assert old.settings != new.settings


@pytest.mark.requirement("CFG-4")
def test_a_shadowed_secret_of_the_wrong_kind_is_masked_in_a_receipt(read: Reader) -> None:
    env = {"SESSION_RUNTIME__MODELS__MAIN__API_KEY": SECRET}
    old, new = read(CHAT, env=env), read(f'{CHAT}api_key = ["v3ry"]\n', env=env)
    [change] = changes(old, new)
    assert (change.key, change.old, change.new) == ("models.main.api_key", None, ["***"])


@pytest.mark.requirement("CFG-4")
def test_what_is_masked_in_an_address_can_be_listed() -> None:
    address = "https://h/v1?jwt=a1&v=2&code=b%202&session_id=c3&c4#d5"
    assert address_secrets(address) == ("a1", "b%202", "c3", "c4", "d5")
    assert masked_address(address) == "https://h/v1?jwt=***&v=2&code=***&session_id=***&***#***"
    assert address_secrets("what? token=x") == ()
