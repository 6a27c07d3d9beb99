"""Going back to a configuration that worked: what is written back, what stays, what is refused."""

import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

from session_runtime.config.edit import open_file
from session_runtime.config.history import History
from session_runtime.config.load import load
from session_runtime.config.origin import MASK
from session_runtime.config.rollback import Rollback, plan_rollback
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.config.written import alike, keys_of, masked, same, with_secrets
from session_runtime.errors import ConfigError, PermanentError, Problem, RequestError
from tests.config.editing import Editor, go_back, swept
from tests.config.layouts import LAYOUTS, SETTINGS, Layout, tree

AT = datetime(2026, 3, 1, tzinfo=UTC)
HASH = f"sha256:{'0' * 64}"
KEY = f'[http.keys.bot]\nhash = "{HASH}"\n'
RULE = '[access.rules.guests]\nroles = ["guest"]\ndeny = ["files.*"]\n'
PROFILE = '[models.m]\nmodel = "m"\nbase_url = "http://h/v1"\n'
WRITES = """
from datetime import UTC, datetime
from session_runtime.config.history import History
from session_runtime.config.load import load
from session_runtime.config import edit
from session_runtime.config.rollback import plan_rollback

def prepare(folder):
    History(folder / "history").add({"ask": {"max_steps": 1}}, "d", datetime.now(UTC))
    (folder / "config.toml").write_text("[ask]\\nmax_steps = 2 # now\\n")

def write(folder, step):
    path = folder / "config.toml"
    check = lambda text: load(path, named=True, env={}, text=text)
    file = edit.open_file(path, may_be_absent=True)
    planned = plan_rollback(file, History(folder / "history"), 1, check)
    edit.write(planned.edit, step)

sweep(prepare, write)
"""

Back = Callable[..., Rollback]


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    return Editor(tmp_path / "config.toml")


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history")


@pytest.fixture
def back(editor: Editor, history: History) -> Back:
    """Go from a text to one that worked before; without a text, there is no file."""

    def back(worked: str, now: str | None, *include: str) -> Rollback:
        number = history.add(tomllib.loads(worked), "d", AT).number
        if now is not None:
            editor.write(now)
        return go_back(editor.path, history, number, editor.check, include)

    return back


def refused(back: Back, editor: Editor, code: str, worked: str, now: str | None) -> str:
    with pytest.raises(RequestError) as caught:
        back(worked, now)
    assert caught.value.code == code
    assert (editor.read() if editor.path.exists() else None) == now
    return str(caught.value)


@pytest.mark.requirement("REL-6")
def test_the_old_values_come_back_and_comments_stay(back: Back, editor: Editor) -> None:
    now = "# mine\n[ask]\nmax_steps = 9 # too many\nmax_tool_calls = 1\n\n[http]\nport = 1\n"
    done = back('[ask]\nmax_steps = 3\n[log]\nlevel = "debug"\n', now)
    assert editor.read() == ('# mine\n[ask]\nmax_steps = 3 # too many\n\n[log]\nlevel = "debug"\n')
    assert {each.key: (each.old, each.new) for each in done.edit.differences} == {
        "ask.max_steps": (9, 3),
        "ask.max_tool_calls": (1, None),
        "http.port": (1, None),
        "log.level": (None, "debug"),
    }
    assert done.left == ()


@pytest.mark.requirement("REL-6")
def test_keys_and_access_stay_and_are_told_unless_they_are_named(
    back: Back, editor: Editor
) -> None:
    worked = f'[ask]\nmax_steps = 1\n\n[access]\ndefault = "deny"\n\n{KEY}'
    now = f"[ask]\nmax_steps = 2\n\n{RULE}"
    done = back(worked, now)
    assert editor.read() == f"[ask]\nmax_steps = 1\n\n{RULE}"
    assert done.left == ("keys", "access")
    assert back(worked, now, "keys").left == ("access",)
    assert tomllib.loads(editor.read()) == tomllib.loads(f"[ask]\nmax_steps = 1\n{RULE}{KEY}")
    assert back(worked, now, "keys", "access").left == ()
    assert tomllib.loads(editor.read()) == tomllib.loads(worked)


@pytest.mark.requirement("REL-6")
def test_keys_that_were_added_since_do_not_go(back: Back, editor: Editor) -> None:
    back("[http]\nport = 1\n", f"[http]\nport = 2\n\n{KEY}")
    assert editor.read() == f"[http]\nport = 1\n\n{KEY}"


@pytest.mark.requirement("CFG-4b")
@pytest.mark.parametrize("now", ["sk-new-secret", "env:M_API_KEY"], ids=["secret", "reference"])
def test_a_secret_that_was_written_out_stays_what_it_is_now(
    back: Back, tmp_path: Path, now: str
) -> None:
    editor = Editor(tmp_path / "config.toml", {"M_API_KEY": "k"})
    history = History(tmp_path / "history")
    history.add(tomllib.loads(f'{PROFILE}api_key = "sk-old-secret"\ntimeout_s = 1\n'), "d", AT)
    editor.write(f'{PROFILE}api_key = "{now}" # rotated\n')
    go_back(editor.path, history, 1, editor.check)
    assert editor.read() == f'{PROFILE}api_key = "{now}" # rotated\ntimeout_s = 1\n'


@pytest.mark.requirement("CFG-4b")
def test_a_secret_that_is_nowhere_any_more_is_asked_for(back: Back, editor: Editor) -> None:
    message = refused(
        back,
        editor,
        "config.secret_not_kept",
        f'{PROFILE}api_key = "sk-old"\nheaders = {{ X-Team = "sk-team" }}\n',
        "[ask]\nmax_steps = 1\n",
    )
    assert message == (
        f"the history holds no secrets, and {editor.path} has none for models.m.api_key,"
        ' models.m.headers.X-Team: write it there first, best as "env:NAME" or "file:/path", and go'
        " back then"
    )


@pytest.mark.requirement("REL-6")
def test_the_first_profile_is_the_first_one_again(back: Back, editor: Editor) -> None:
    first, second = PROFILE, PROFILE.replace("[models.m]", "[models.n]")
    back(f"{first}\n{second}", f"{second}\n{first}")
    assert list(tomllib.loads(editor.read())["models"]) == ["m", "n"]


@pytest.mark.requirement("REL-6")
def test_what_would_be_bad_today_is_not_written(back: Back, editor: Editor) -> None:
    now = "[ask]\nmax_steps = 1\n"
    with pytest.raises(ConfigError, match="must be at least 1"):
        back("[ask]\nmax_steps = 0\n", now)
    assert editor.read() == now


@pytest.mark.requirement("REL-6")
def test_a_file_with_a_fault_can_go_back(back: Back, editor: Editor) -> None:
    back("[ask]\nmax_steps = 1\n", "[ask]\nmax_stepz = 1\nmax_steps = 0\n")
    assert editor.read() == "[ask]\nmax_steps = 1\n"


def test_a_file_that_is_no_toml_is_left_for_a_person_to_mend(back: Back, editor: Editor) -> None:
    with pytest.raises(ConfigError) as caught:
        back("[ask]\nmax_steps = 1\n", "[ask\n")
    fault, way_out = map(str, caught.value.problems)
    assert fault.startswith("config.toml:1: column 5: not valid TOML")
    assert way_out == "config.toml: mend that, or move the file away, and go back then"
    assert editor.read() == "[ask\n"


@pytest.mark.requirement("REL-6")
def test_a_file_that_is_gone_is_written_anew(back: Back, editor: Editor) -> None:
    back("[ask]\nmax_steps = 1\n", None)
    assert editor.read() == "[ask]\nmax_steps = 1\n"


@pytest.mark.requirement("REL-6")
@pytest.mark.parametrize("now", [None, "", "\ufeff \n"], ids=["gone", "empty", "blank"])
def test_a_file_that_is_gone_takes_no_access_rules_with_it(
    back: Back, editor: Editor, now: str | None
) -> None:
    message = refused(back, editor, "config.nothing_to_keep", f"{KEY}{RULE}", now)
    assert message == (
        f"{editor.path} holds nothing, so keys and access cannot stay as they are: to take those of"
        " entry 1, say --include keys,access"
    )
    back(f"{KEY}{RULE}", None, "keys", "access")
    assert tomllib.loads(editor.read().removeprefix("\ufeff")) == tomllib.loads(f"{KEY}{RULE}")


@pytest.mark.requirement("REL-6")
def test_a_read_only_file_is_refused_with_where_to_change_it(back: Back, editor: Editor) -> None:
    now = "[ask]\nmax_steps = 1\n"
    editor.write(now)
    editor.path.chmod(0o444)
    with pytest.raises(PermanentError, match="is read-only: change it where it is made"):
        back("[ask]\nmax_steps = 2\n", None)
    assert editor.read() == now


@pytest.mark.requirement("CFG-3b")
def test_a_key_that_a_variable_hides_goes_back_too_with_a_warning(
    tmp_path: Path, history: History
) -> None:
    editor = Editor(tmp_path / "config.toml", {"SESSION_RUNTIME__ASK__MAX_STEPS": "7"})
    editor.write("[ask]\nmax_steps = 1\n")
    history.add({"ask": {"max_steps": 2}}, "d", AT)
    planned = go_back(editor.path, history, 1, editor.check)
    assert editor.read() == "[ask]\nmax_steps = 2\n"
    assert planned.edit.warnings == (
        Problem("no effect: shadowed by env SESSION_RUNTIME__ASK__MAX_STEPS", key="ask.max_steps"),
    )


def test_a_plan_writes_nothing(editor: Editor, history: History) -> None:
    editor.write("[ask]\nmax_steps = 1\n")
    history.add({"ask": {"max_steps": 2}}, "d", AT)
    planned = plan_rollback(open_file(editor.path), history, 1, editor.check)
    assert planned.edit.content == b"[ask]\nmax_steps = 2\n"
    assert editor.read() == "[ask]\nmax_steps = 1\n"


@pytest.mark.requirement("REL-6")
def test_a_kill_at_any_step_leaves_the_file_of_before_or_of_after(tmp_path: Path) -> None:
    assert swept(tmp_path, WRITES) == 8
    texts = {(case / "config.toml").read_text() for case in tmp_path.iterdir()}
    assert texts == {"[ask]\nmax_steps = 2 # now\n", "[ask]\nmax_steps = 1 # now\n"}


@pytest.mark.requirement("REL-6")
@settings(deadline=None)
@given(SETTINGS, SETTINGS, LAYOUTS)
def test_going_back_gives_what_was_kept_with_the_secrets_of_now(
    worked: Mapping[tuple[str, ...], Any], now: Mapping[tuple[str, ...], Any], layout: Layout
) -> None:
    with TemporaryDirectory() as folder:
        path, history = Path(folder) / "config.toml", History(Path(folder))
        number = history.add(tree(worked), "d", AT).number
        text = layout.text(tree(now))
        path.write_bytes(text.encode())
        wanted, missing = with_secrets(masked(tree(worked)), tomllib.loads(text))
        back = partial(go_back, path, history, number, anything_goes, ("keys", "access"))
        if missing:
            with pytest.raises(RequestError, match="the history holds no secrets"):
                back()
        else:
            back()
            assert alike(tomllib.loads(path.read_bytes().decode()), wanted)
            kept = keys_of(masked(tree(worked)))
            open_keys = [key for key, value in kept.items() if MASK not in repr(value)]
            assert kept.keys() == keys_of(wanted).keys()
            assert all(same(keys_of(wanted)[key], kept[key]) for key in open_keys)


def anything_goes(content: bytes) -> ConfigSnapshot:
    """Takes every content for a good configuration: what a good one is, is tested elsewhere."""
    del content
    return load(None, named=False, env={})
