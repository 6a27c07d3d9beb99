"""How many files the daemon may have open; each limit is tried in a process of its own."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

import session_runtime
from session_runtime.app.open_files import SPARE, expected_load, most_connections, wanted_files
from session_runtime.app.reader import ConfigReader
from session_runtime.transports.mcp.endpoint import LIMITS

LIMITED = """
import logging, resource, sys
from session_runtime.app.open_files import allow_open_files
soft, hard, asks, sessions, waiting = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
logging.basicConfig(level="WARNING", format="%(levelname)s %(message)s", stream=sys.stdout)
allow_open_files(asks, sessions, waiting)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def limited(soft: int, hard: int, asks: int, sessions: int = 0, waiting: int = 0) -> list[str]:
    sources = str(Path(session_runtime.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, (soft, hard, asks, sessions, waiting))],
        env={"PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("soft", "hard", "asks", "sessions", "raised"),
    [
        (256, 4_000, 500, 0, 2_256),
        (256, 4_000, 1, 0, 260),
        (3_000, 4_000, 500, 0, 3_000),
        (256, 4_000, 500, 512, 3_280),
    ],
)
def test_as_many_files_as_the_asks_need_are_allowed_and_no_more(
    soft: int, hard: int, asks: int, sessions: int, raised: int
) -> None:
    assert limited(soft, hard, asks, sessions) == [f"{raised} {hard}"]


def test_where_there_is_no_room_for_asks_that_wait_nobody_need_be_told() -> None:
    assert limited(256, 9_000, 100, 0, 200) == ["1056 9000"]
    assert limited(256, 700, 100, 0, 200) == ["700 700"]


def test_sessions_that_the_limit_leaves_no_room_for_are_told_too() -> None:
    warning, limits = limited(256, 2_000, 500, 512)
    assert limits == "2000 2000"
    assert warning == (
        "WARNING 500 asks at once (runtime.max_concurrent_asks) and 512 sessions of MCP clients (http.mcp)"
        " may need 3280 open files and sockets, and the system allows this process 2000: raise its hard"
        " limit (ulimit -Hn, LimitNOFILE of a service), or set runtime.max_concurrent_asks to 180"
    )


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


def test_sessions_that_listen_take_no_connection_from_asks() -> None:
    assert most_connections(10, 50) == 10 + 50 + SPARE


@pytest.mark.requirement("NET-5b")
def test_asks_that_wait_take_no_connection_from_those_that_run() -> None:
    assert most_connections(10, 50, 20) == 10 + 50 + 20 + SPARE


@pytest.mark.parametrize(
    ("asks", "sessions", "waiting"),
    [(256, 0, 512), (256, 512, 512), (1, 512, 0), (1_000, 1, 1), (1, 0, 512)],
)
def test_the_files_that_are_allowed_are_enough_for_all_connections(
    asks: int, sessions: int, waiting: int
) -> None:
    assert wanted_files(asks, sessions, waiting) // 2 >= asks + sessions + waiting + SPARE


@pytest.mark.parametrize(("mcp", "sessions"), [("false", 0), ("true", LIMITS.most)])
def test_sessions_of_mcp_clients_count_while_they_may_come(
    tmp_path: Path, mcp: str, sessions: int
) -> None:
    text = f"[http]\nmcp = {mcp}\n[runtime]\nmax_concurrent_asks = 7\n"
    settings = ConfigReader(tmp_path / "config.toml", {})(text.encode()).settings
    assert expected_load(settings) == (7, sessions, 512)
