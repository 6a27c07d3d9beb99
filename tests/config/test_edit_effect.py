"""Edits of keys that another source wins over: refused if that is all, else done with a warning."""

from pathlib import Path

import pytest

from session_runtime.config.written import REMOVED
from session_runtime.errors import Problem, RequestError
from tests.config.editing import Editor


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    editor = Editor(tmp_path / "config.toml")
    editor.write("[ask]\nmax_steps = 1\n")
    return editor


def refused(editor: Editor, **values: object) -> str:
    """An edit that is refused as it has no effect; gives the message."""
    before = editor.read()
    with pytest.raises(RequestError) as caught:
        editor.set(**values)
    assert (caught.value.code, editor.read()) == ("config.shadowed", before)
    return str(caught.value)


@pytest.mark.requirement("CFG-3b")
@pytest.mark.parametrize(
    ("env", "explicit", "source"),
    [
        ({"SESSION_RUNTIME__ASK__MAX_STEPS": "7"}, {}, "env SESSION_RUNTIME__ASK__MAX_STEPS"),
        ({"SESSION_RUNTIME__ASK": '{"max_steps": 7}'}, {}, "env SESSION_RUNTIME__ASK"),
        ({}, {"ask.max_steps": 7}, "explicit"),
    ],
)
def test_an_edit_without_effect_is_refused_and_names_what_wins(
    editor: Editor, env: dict[str, str], explicit: dict[str, object], source: str
) -> None:
    there = Editor(editor.path, env, explicit)
    message = refused(there, ask__max_steps=2)
    assert message == (
        f"ask.max_steps: no effect: shadowed by {source}; change it there, or leave it out there first"
    )
    told = (Problem(f"no effect: shadowed by {source}", key="ask.max_steps"),)
    assert there.set(ask__max_steps=2, ask__max_tool_calls=5).warnings == told
    assert there.set(ask__max_steps=REMOVED).warnings == told
    assert "max_steps" not in editor.read()


@pytest.mark.requirement("CFG-3b")
def test_a_key_whose_place_a_shared_variable_takes_may_be_removed(editor: Editor) -> None:
    profile = '[models.m]\nmodel = "m"\nbase_url = "http://h/v1"\n'
    editor.write(f'{profile}api_key = "env:M_API_KEY"\n')
    env = {"OPENAI_API_KEY": "shared", "M_API_KEY": "own"}
    Editor(editor.path, env).set(models__m__api_key=REMOVED)
    assert editor.read() == profile


def test_the_old_spelling_is_compared_with_variables_of_the_new_one(editor: Editor) -> None:
    env = {"SESSION_RUNTIME__NOTICES__MODE": "all"}
    values = {"easter_egg__agent_call_message_enabled": True}
    assert "shadowed by" in refused(Editor(editor.path, env), **values)
