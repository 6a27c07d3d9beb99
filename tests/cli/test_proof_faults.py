"""What a command tells of an edit that is refused: where the fault stands, and what the daemon answers."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from session_runtime.cli import exits
from session_runtime.wire.control import SOCKET
from tests.cli.conftest import Run
from tests.control_daemon import control_daemon

MODEL = '[models.m]\nbase_url = "http://h/v1"\nmodel = "m"\napi_key = "env:ONLY_THERE_API_KEY"\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_what_is_given_with_an_edit_stands_at_no_line_yet(run: Run, config: Path) -> None:
    config.write_text("# mine\n")
    done = run("config", "set", "ask.max_steps", "zero")
    assert (done.code, done.err) == (
        exits.CONFIG,
        'error: ask.max_steps: must be a whole number (given: "zero")\n',
    )


@pytest.mark.parametrize("served", [False, True], ids=["alone", "beside a daemon"])
@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        ("# mine\n", ("models.x.base_url", "http://h/v1"), "models.x.model: "),
        ("[models]\n", ("models.x.base_url", "http://h/v1"), "models.x.model: "),
        ("# mine\n", ("http.keys.bot.channel", "irc"), "http.keys.bot.hash: "),
        (
            "[ask]\n",
            ("mcp.servers.s", '{ url = "http://h/mcp", headers = { A = "env:NOT_SET_A" } }'),
            "mcp.servers.s",
        ),
        (
            '[models.m]\nbase_url = "http://h/v1"\nmodel = "m"\n',
            ("models.m.headers", '{ A = "a\\nb" }'),
            "models.m.headers",
        ),
    ],
)
def test_what_is_missing_in_a_table_that_an_edit_makes_stands_at_no_line_yet(
    run: Run, tmp_path: Path, served: bool, text: str, arguments: tuple[str, ...], told: str
) -> None:
    (tmp_path / "config.toml").write_text(text)
    with control_daemon(tmp_path, text) if served else nullcontext():
        before = (tmp_path / "config.toml").read_text()
        done = run("config", "set", *arguments)
    assert (done.code, (tmp_path / "config.toml").read_text()) == (exits.CONFIG, before)
    assert done.err.startswith(f"error: {told}")
    assert "config.toml" not in done.err


def test_what_is_wrong_in_a_table_that_is_there_is_shown_where_it_stands(
    run: Run, config: Path
) -> None:
    config.write_text('[models.m]\nbase_url = "http://h/v1"\nmodel = 3\n')
    done = run("config", "set", "ask.max_steps", "2")
    assert done.err.startswith("error: config.toml:3: models.m.model: ")


@pytest.mark.requirement("REL-6")
def test_what_the_daemon_refuses_to_look_at_is_not_checked_by_the_shell_instead(
    run: Run, tmp_path: Path
) -> None:
    """It would say of a variable that the daemon has that no daemon answers."""
    text = MODEL + "# a long comment\n" * 1_000
    with control_daemon(tmp_path, text, {"ONLY_THERE_API_KEY": "sk-there"}):
        before = (tmp_path / "config.toml").read_text()
        done = run("config", "set", "ask.max_steps", "2")
    assert (done.code, done.out, (tmp_path / "config.toml").read_text()) == (
        exits.USAGE,
        "",
        before,
    )
    assert done.err == (
        "error: the body has more than 10000 bytes, the most that http.max_body_bytes allows\n"
    )


@contextmanager
def answering(folder: Path, answer: bytes) -> Iterator[None]:
    """Something at the control socket of ``folder`` that gives this answer to every request."""
    place = folder / ".session-runtime" / SOCKET
    place.parent.mkdir()

    class Answering(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if self.rfile.readline():
                self.wfile.write(answer)

    with socketserver.ThreadingUnixStreamServer(str(place), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def answer_of(status: str, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


@pytest.mark.requirement("REL-6")
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            answer_of(
                "503 Service Unavailable",
                b'{"error": {"code": "busy.stopping", "message": "it stops", "retryable": true}}',
            ),
            "it stops",
        ),
        (answer_of("500 Internal Server Error", b"oh"), "answered with status 500 and no JSON"),
        (b"", "the daemon did not answer GET /v1/config"),
    ],
    ids=["busy", "broken", "silent"],
)
def test_a_daemon_that_answers_with_an_error_is_one(
    run: Run, tmp_path: Path, answer: bytes, told: str
) -> None:
    (tmp_path / "config.toml").write_text("[ask]\n")
    with answering(tmp_path, answer):
        done = run("config", "set", "ask.max_steps", "2")
    assert (done.code, done.out, (tmp_path / "config.toml").read_text()) == (1, "", "[ask]\n")
    assert told in done.err
