"""Misbehaviours by name: each one changes what is sent on every wire that it is said to be on."""

import fnmatch
import re
from pathlib import Path

import pytest

from session_runtime.testing.chat_form import as_completion
from session_runtime.testing.message_form import as_message
from session_runtime.testing.misbehaviour import MISBEHAVIOURS, WIRES, misbehave
from session_runtime.testing.replies import RawReply, Reply, reply_calls
from session_runtime.testing.response_form import as_response

RIGHT = reply_calls(("probe", {"q": "a"}), ("probe", {"q": "b"}))
FORMS = {"chat": as_completion, "responses": as_response, "anthropic": as_message}
DOCS = Path(__file__).parents[2] / "docs" / "models.md"


def sent(reply: Reply, wire: str, stream: bool) -> RawReply:
    request = {"stream": stream}
    if isinstance(reply, RawReply):
        return reply
    return FORMS[wire](reply, request, 1)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_a_misbehaviour_is_to_be_seen_on_its_wires_and_on_no_other(name: str, wire: str) -> None:
    wrong = misbehave(name, RIGHT)
    right = [sent(RIGHT, wire, stream) for stream in (True, False)]
    changed = [sent(wrong, wire, stream) for stream in (True, False)] != right
    assert changed == (wire in MISBEHAVIOURS[name].wires)


def test_the_right_reply_is_left_as_it_is() -> None:
    before = [sent(RIGHT, wire, stream=True) for wire in WIRES]
    for name in MISBEHAVIOURS:
        for wire in WIRES:
            sent(misbehave(name, RIGHT), wire, stream=True)
    assert [sent(RIGHT, wire, stream=True) for wire in WIRES] == before


def test_the_page_about_models_tells_of_every_name() -> None:
    section = DOCS.read_text("utf-8").partition("### Misbehaviour by name")[2]
    told = re.findall(r"`([a-z_*0-9]+)`", section)
    assert [n for n in MISBEHAVIOURS if not any(fnmatch.fnmatch(n, each) for each in told)] == []
