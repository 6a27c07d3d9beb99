"""Keys are made, listed and removed by commands, and the file gets no more than a hash."""

import json
import tomllib
from pathlib import Path

import pytest

from session_runtime.cli import exits
from session_runtime.config.load import load
from session_runtime.registry.keyring import hash_of, open_keyring
from tests.cli.conftest import Run

REMARK = "# mine\n[ask]\nmax_steps = 3 # few\n"


def keys_in(text: str) -> object:
    return tomllib.loads(text)["http"]["keys"]


@pytest.mark.requirement("NET-2b")
def test_a_key_is_printed_alone_and_what_to_add_goes_to_the_error_stream(run: Run) -> None:
    done = run("keys", "add", "bot", "--role", "staff", "--act-for", "tg-*", "--act-for", "x")
    key = done.out.strip()
    assert (done.code, done.out.count("\n"), key[:3]) == (exits.OK, 1, "sr_")
    told, block = done.err.split("\n\n")
    assert "add to" in told
    assert keys_in(block) == {
        "bot": {"hash": hash_of(key), "roles": ["staff"], "act_for": ["tg-*", "x"]}
    }
    assert key not in done.err
    assert not Path("config.toml").exists()


@pytest.mark.requirement("NET-2b")
def test_a_key_that_is_written_lets_its_owner_in(run: Run) -> None:
    Path("config.toml").write_text(REMARK)
    more = ("--channel", "tg", "--group", "g", "--role", "admin")
    made = json.loads(run("keys", "add", "a.b", *more, "--write", "--json").out)
    text = Path("config.toml").read_text()
    assert made == {
        "name": "a.b",
        "key": made["key"],
        "hash": hash_of(made["key"]),
        "written": True,
    }
    assert text.startswith(REMARK)
    assert made["key"] not in text
    keyring = open_keyring(load(Path("config.toml"), named=True, env={}).settings.http.keys)
    owner = keyring.owner(made["key"].encode())
    assert owner is not None
    assert (owner.name, owner.admin, owner.identity.channel) == ("a.b", True, "tg")  # type: ignore[union-attr]


@pytest.mark.requirement("NET-2b")
def test_every_key_is_another_one(run: Run) -> None:
    keys = {run("keys", "add", "bot").out for _ in range(5)}
    assert len(keys) == 5


@pytest.mark.requirement("NET-7b")
@pytest.mark.requirement("NET-2b")
def test_a_command_about_keys_takes_the_folder_of_the_state(run: Run) -> None:
    assert run("keys", "add", "bot", "--state-dir", "elsewhere").code == 0
    assert run("keys", "list", "--state-dir", "elsewhere", "--json").out == "[]\n"


def test_keys_are_listed_without_what_would_let_anybody_in(run: Run) -> None:
    Path("config.toml").write_text(REMARK)
    assert json.loads(run("keys", "list", "--json").out) == []
    assert run("keys", "list").err == "there are no keys: this machine alone may call\n"
    made = json.loads(run("keys", "add", "bot", "--act-for", "*", "--write", "--json").out)
    short = made["hash"].removeprefix("sha256:")[:8]
    assert run("keys", "list").out == f"bot  {short}  roles: -  acts for: *\n"
    assert json.loads(run("keys", "list", "--json").out) == [
        {
            "name": "bot",
            "roles": [],
            "act_for": ["*"],
            "channel": None,
            "group": None,
            "hash": short,
        }
    ]


@pytest.mark.requirement("NET-2b")
def test_a_revoked_key_is_gone_from_the_file_and_nothing_else_is(run: Run) -> None:
    Path("config.toml").write_text(REMARK)
    for name in ("bot", "shop"):
        run("keys", "add", name, "--write")
    done = run("keys", "revoke", "bot")
    assert (done.code, done.out) == (
        exits.OK,
        f"removed the key of bot from {Path('config.toml').absolute()}\n",
    )
    assert list(keys_in(Path("config.toml").read_text())) == ["shop"]  # type: ignore[call-overload]
    assert Path("config.toml").read_text().startswith(REMARK)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("add", "bot"), exits.USAGE, "there is a key of 'bot' already"),
        (("add", "a b", "--write"), exits.CONFIG, "cannot own a key"),
        (("add", "x", "--role", ""), exits.CONFIG, "item 1 must not be empty"),
        (("add", "x", "--config", "none.toml", "--write"), exits.CONFIG, "none.toml"),
        (("revoke", "both"), exits.USAGE, "there is no key of 'both'"),
        (("revoke", "bot", "--last"), exits.CONFIG, "http.host: callers need no key"),
    ],
)
def test_what_would_make_no_good_configuration_changes_nothing(
    run: Run, arguments: tuple[str, ...], code: int, message: str
) -> None:
    path = Path("config.toml")
    path.write_text("[http.keys]\n")
    run("keys", "add", "bot", "--write")
    path.write_text(f'[http]\nhost = "0.0.0.0"\n\n{path.read_text()}')
    before = path.read_text()
    done = run("keys", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert path.read_text() == before


def test_a_key_that_the_environment_gives_is_not_removed_from_the_file(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSION_RUNTIME__HTTP__KEYS__BOT__HASH", hash_of("x"))
    assert [key["name"] for key in json.loads(run("keys", "list", "--json").out)] == ["bot"]
    done = run("keys", "revoke", "bot")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "is given by env SESSION_RUNTIME__HTTP__KEYS__BOT__HASH: remove it there" in done.err


@pytest.mark.requirement("NET-2b")
def test_without_a_file_no_key_is_written(run: Run) -> None:
    done = run("keys", "add", "bot", "--write")
    assert (done.code, done.out) == (exits.CONFIG, "")
    assert "session-runtime config init writes one to start with" in done.err
    assert not Path("config.toml").exists()


@pytest.mark.requirement("NET-2")
def test_the_last_key_goes_only_on_demand_and_with_a_warning(run: Run) -> None:
    path = Path("config.toml")
    path.write_text(REMARK)
    run("keys", "add", "bot", "--write")
    before = path.read_text()
    meaning = "without a key, every caller on this machine is an administrator"
    refused = run("keys", "revoke", "bot")
    assert (refused.code, refused.out, path.read_text()) == (exits.USAGE, "", before)
    assert refused.err == (
        f"error: the key of 'bot' is the last: {meaning}; add another key first, or say --last\n"
    )
    done = run("keys", "revoke", "bot", "--last", "--json")
    assert (done.code, json.loads(done.out)) == (exits.OK, {"name": "bot", "written": True})
    assert done.err == (
        f"warning: no key is left: {meaning}; no daemon was asked, and one that began with another"
        " runtime.state_dir keeps its keys until a restart\n"
    )
    assert path.read_text().startswith(REMARK)
    assert "bot" not in path.read_text()


@pytest.mark.requirement("NET-2")
@pytest.mark.parametrize(
    ("exposed", "where"),
    [
        ('[mqtt]\nenabled = true\nurl = "mqtt://broker.example.org"\n', "mqtt.url: "),
        ('[http]\nhost = "0.0.0.0"\n', "http.host: "),
    ],
)
def test_the_last_key_that_others_need_is_told_to_be_the_last(
    run: Run, exposed: str, where: str
) -> None:
    path = Path("config.toml")
    path.write_text(f'{exposed}[http.keys.bot]\nhash = "{hash_of("sr_bot")}"\n')
    before = path.read_text()
    refused = run("keys", "revoke", "bot")
    assert (refused.code, path.read_text()) == (exits.USAGE, before)
    assert refused.err.startswith(
        f"error: the key of 'bot' is the last: add another key first; without one, {where}"
    )
    last = run("keys", "revoke", "bot", "--last")
    assert (last.code, path.read_text()) == (exits.CONFIG, before)


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_a_key_can_be_made_before_there_is_anything_in_the_file(run: Run, content: str) -> None:
    config = Path("config.toml")
    config.write_text(content, "utf-8")
    done = run("keys", "add", "bot", "--act-for", "*")
    assert done.code == exits.OK, done.err
    assert keys_in(done.err.split("\n\n")[1]) == {
        "bot": {"hash": hash_of(done.out.strip()), "act_for": ["*"]}
    }
    assert config.read_text("utf-8") == content


@pytest.mark.requirement("REL-2")
def test_a_key_is_not_written_into_a_file_that_a_failed_save_may_have_left_empty(run: Run) -> None:
    Path("config.toml").touch()
    done = run("keys", "add", "bot", "--write")
    assert (done.code, done.out) == (exits.CONFIG, "")
    assert "is empty" in done.err
    assert Path("config.toml").read_bytes() == b""


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize(
    "written",
    [
        '[http]\nhost = "0.0.0.0"\n',
        '[mqtt]\nenabled = true\nurl = "mqtt://broker.example.org"\n',
        "[mqtt]\nenabled = true\n",
        f'[mqtt]\nenabled = true\n[mqtt.signers.bot]\nsecret = "{"s" * 32}"\n',
    ],
)
def test_what_is_only_allowed_with_keys_does_not_keep_the_first_one_from_being_made(
    run: Run, written: str
) -> None:
    path = Path("config.toml")
    path.write_text(written)
    shown = run("keys", "add", "bot")
    assert (shown.code, path.read_text()) == (exits.OK, written)
    made = run("keys", "add", "bot", "--write")
    assert (made.code, list(keys_in(path.read_text()))) == (exits.OK, ["bot"])  # type: ignore[call-overload]
    needs = "to ask by MQTT it needs a signing secret too: [mqtt.signers.bot]"
    assert (needs in made.err) == ("[mqtt]" in written and "signers" not in written)


@pytest.mark.requirement("NET-2b")
def test_a_key_that_is_there_is_not_made_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("config.toml").write_text(REMARK)
    run("keys", "add", "bot", "--write")
    monkeypatch.setenv("SESSION_RUNTIME__HTTP__KEYS__ENV__HASH", hash_of("x"))
    for name in ("bot", "env"):
        done = run("keys", "add", name, "--write")
        assert (done.code, done.out) == (exits.USAGE, "")
        assert f"there is a key of '{name}' already" in done.err
