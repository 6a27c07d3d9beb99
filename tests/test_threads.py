"""Functions that run beside the event loop."""

import threading

import pytest

from session_runtime.threads import aside


async def test_a_function_runs_in_a_thread_of_the_name() -> None:
    assert await aside("adding", lambda: threading.current_thread().name) == "adding"


async def test_what_a_function_raises_in_its_thread_is_raised() -> None:
    def fail() -> None:
        raise RuntimeError("its own")

    with pytest.raises(RuntimeError, match="its own"):
        await aside("failing", fail)


async def test_a_function_runs_here_where_the_system_gives_no_more_threads() -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert await aside("adding", threading.current_thread) is threading.current_thread()
