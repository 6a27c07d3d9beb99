"""How many files the daemon may have open; each limit is tried in a process of its own."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

import session_runtime
from session_runtime.app.open_files import SPARE, most_connections

LIMITED = """
import logging, resource, sys
from session_runtime.app.open_files import allow_open_files
soft, hard, asks = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
logging.basicConfig(level="WARNING", format="%(levelname)s %(message)s", stream=sys.stdout)
allow_open_files(asks)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def limited(soft: int, hard: int, asks: int) -> list[str]:
    sources = str(Path(session_runtime.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, (soft, hard, asks))],
        env={"PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("soft", "hard", "asks", "raised"),
    [(256, 4_000, 500, 2_256), (256, 4_000, 1, 260), (3_000, 4_000, 500, 3_000)],
)
def test_as_many_files_as_the_asks_need_are_allowed_and_no_more(
    soft: int, hard: int, asks: int, raised: int
) -> None:
    assert limited(soft, hard, asks) == [f"{raised} {hard}"]


def test_a_hard_limit_that_is_too_low_is_told_with_figures_and_ways_out() -> None:
    warning, limits = limited(256, 1_024, 500)
    assert limits == "1024 1024"
    assert warning == (
        "WARNING 500 asks at once (runtime.max_concurrent_asks) may need 2256 open files and sockets,"
        " and the system allows this process 1024: raise its hard limit (ulimit -Hn, LimitNOFILE of a"
        " service), or set runtime.max_concurrent_asks to 192"
    )


def test_a_limit_that_is_hardly_enough_for_the_daemon_itself_still_names_an_ask() -> None:
    warning, limits = limited(64, 200, 256)
    assert limits == "200 200"
    assert warning.endswith("or set runtime.max_concurrent_asks to 1")


def test_callers_get_no_more_connections_than_leave_room_for_what_asks_open() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert most_connections(10) == 10 + SPARE
    assert most_connections(10 * soft) == soft // 2
