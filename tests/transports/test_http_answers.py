"""How answers are written: those that take long in a thread, so that other asks go on."""

import threading

import pytest

from session_runtime.transports.http.answers import written


@pytest.mark.parametrize(("chars", "here"), [(100, True), (10_000_000, False)])
async def test_a_long_answer_is_written_aside(chars: int, here: bool) -> None:
    wrote = await written(chars, threading.get_ident)
    assert (wrote == threading.get_ident()) == here
