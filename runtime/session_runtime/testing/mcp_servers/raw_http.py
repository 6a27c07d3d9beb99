"""A server that speaks streamable HTTP on 127.0.0.1 without any SDK, as a process that can be killed.

``RawHttp(Script(...))`` starts one, and again at the same address; a new process knows no session of the
one before, and answers it with 404.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final

from session_runtime.testing.mcp_servers.playing import Player, Work
from session_runtime.testing.mcp_servers.script import Script, script_from_json

_ROOT: Final = str(Path(__file__).parents[3])
_START: Final = (
    f"import sys; sys.path.insert(0, {_ROOT!r});"
    " from session_runtime.testing.mcp_servers.raw_http import main; main(*sys.argv[1:])"
)
_SESSION: Final = "Mcp-Session-Id"
_LOOK_S: Final = 0.02


class RawHttp:
    """The process of one such server; ``with`` starts it, and leaves nothing of it."""

    def __init__(self, script: Script | None = None) -> None:
        self._script = script or Script()
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address, the same after it was started again."""
        return f"http://127.0.0.1:{self._port}/mcp"

    @property
    def has_ended(self) -> bool:
        """Whether it was started and has ended by itself, as its script can make it."""
        return self._process is not None and self._process.poll() is not None

    def start(self, script: Script | None = None) -> None:
        """Start it at its address, from now on with this script; returns when it listens."""
        self._script = script or self._script
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", _START, self._script.to_json(), str(self._port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def kill(self) -> None:
        """End it as a crash does: without another word to anybody."""
        if self._process is not None:
            with self._process:
                self._process.kill()
            self._process = None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal: SIGUSR1 lets it change its list."""
        assert self._process is not None
        self._process.send_signal(number)

    def __enter__(self) -> "RawHttp":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


def main(text: str, port: str = "0") -> None:
    """Play the script of this JSON at this port until the input ends; prints the port first."""
    server = _Server(script_from_json(text), int(port))
    signal.signal(signal.SIGUSR1, partial(_change, server.player))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    os._exit(0)


def _change(player: Player, *_: Any) -> None:
    threading.Thread(target=player.change_list, daemon=True).start()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Script, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Exchange)
        self.script = script
        self.player = Player(script, self.tell)
        self.sessions: set[str] = set()
        self.listeners: list[SimpleQueue[bytes]] = []
        self._lock = threading.Lock()
        self._seen: dict[str, int] = {}

    def tell(self, data: bytes) -> None:
        """Send a message to all that listen by GET."""
        for listener in list(self.listeners):
            listener.put(data)

    def status_for(self, method: str) -> int:
        """The status that the script wants for this request instead of an answer, or 0."""
        with self._lock:
            count = self._seen[method] = self._seen.get(method, 0) + 1
        wanted = self.script.statuses.get(method, ())
        return wanted[count - 1] if count <= len(wanted) else 0


class _Exchange(BaseHTTPRequestHandler):
    """One request and its answer."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        message = json.loads(self.rfile.read(length))
        method = str(message.get("method"))
        if status := self.server.status_for(method):
            self._empty(status, {"Retry-After": "1"} if status in (429, 503) else {})
        elif not self._is_known(message):
            self._empty(404, {})
        else:
            self._answer(method, message)

    def do_GET(self) -> None:
        """What the server says of its own accord, as events until the client leaves."""
        if self.headers.get(_SESSION) not in self.server.sessions:
            self._empty(405, {})
            return
        listener: SimpleQueue[bytes] = SimpleQueue()
        self.server.listeners.append(listener)
        self._begin_events({})
        try:
            while not self._has_left():
                while not listener.empty():
                    self._event(listener.get())
        except OSError:
            pass
        finally:
            self.server.listeners.remove(listener)

    def do_DELETE(self) -> None:
        self.server.sessions.discard(self.headers.get(_SESSION, ""))
        self._empty(204, {})

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _is_known(self, message: Mapping[str, Any]) -> bool:
        """Whether the request belongs to a session, or needs none."""
        params = message.get("params") or {}
        stateless = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
        needs_none = stateless or message.get("method") == "initialize"
        return (
            needs_none
            or not self.server.script.sessions
            or self.headers.get(_SESSION) in self.server.sessions
        )

    def _answer(self, method: str, message: Mapping[str, Any]) -> None:
        script = self.server.script
        sent: SimpleQueue[bytes] = SimpleQueue()
        seen = {**message, "_headers": dict(self.headers.items())} if script.received else message
        work = self.server.player.handle(seen, sent.put)
        if work is None:
            self._empty(202, {})
            return
        headers = {}
        if method == "initialize" and script.sessions and script.era != "stateless":
            headers[_SESSION] = uuid.uuid4().hex
            self.server.sessions.add(headers[_SESSION])
        try:
            if script.answers == "json":
                self._send_json(work, sent, headers)
            else:
                self._send_events(work, sent, headers)
        except OSError:
            work.cancelled.set()

    def _send_json(self, work: Work, sent: "SimpleQueue[bytes]", headers: dict[str, str]) -> None:
        """The answer alone, once it is there; what came before it is lost."""
        self._wait(work)
        body = b""
        while not sent.empty():
            body = sent.get()
        self.send_response(200)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_events(self, work: Work, sent: "SimpleQueue[bytes]", headers: dict[str, str]) -> None:
        self._begin_events(headers)
        while work.is_alive() or not sent.empty():
            while not sent.empty():
                self._event(sent.get())
            if work.is_alive() and self._has_left():
                work.cancelled.set()
                return

    def _wait(self, work: Work) -> None:
        while work.is_alive() and not self._has_left():
            pass
        work.cancelled.set()

    def _begin_events(self, headers: Mapping[str, str]) -> None:
        self.close_connection = True
        self.send_response(200)
        for name, value in {"Content-Type": "text/event-stream", **headers}.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()

    def _event(self, data: bytes) -> None:
        self.wfile.write(b"event: message\ndata: " + data.strip() + b"\n\n")
        self.wfile.flush()

    def _has_left(self) -> bool:
        """Whether the client closed its side, after a short look."""
        ready, _, _ = select.select([self.connection], [], [], _LOOK_S)
        return bool(ready)

    def _empty(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": "0"}.items():
            self.send_header(name, value)
        self.end_headers()


if __name__ == "__main__":
    main(*sys.argv[1:])
