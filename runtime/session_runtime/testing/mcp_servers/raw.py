"""A server that speaks over its standard input and output without any SDK, and starts within 50 ms.

``raw_server(Script(...))`` gives the command that starts one. It speaks the handshake of the revisions up to
2025-11-25 and the stateless revision 2026-07-28, and breaks the rules that its script names.
"""

import json
import os
import shlex
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any, Final

from session_runtime.testing.mcp_servers.playing import Player
from session_runtime.testing.mcp_servers.script import Script, script_from_json

_STDOUT: Final = 1
_ROOT: Final = str(Path(__file__).parents[3])
_START: Final = (
    f"import sys; sys.path.insert(0, {_ROOT!r});"
    " from session_runtime.testing.mcp_servers.raw import main; main(sys.argv[1])"
)


def raw_server(script: Script | None = None) -> tuple[str, tuple[str, ...]]:
    """The program and its arguments that play the script."""
    return sys.executable, ("-S", "-E", "-c", _START, (script or Script()).to_json())


def orphan_maker(script: Script | None = None) -> tuple[str, tuple[str, ...]]:
    """The same behind a shell that only waits for it, as wrappers like npx do."""
    program, args = raw_server(script)
    command = shlex.join([program, *args])
    return "sh", ("-c", f"exec 3<&0; {command} <&3 & wait")


def main(text: str) -> None:
    """Play the script of this JSON until the input ends."""
    sys.setrecursionlimit(20_000)  # the tool deep_schema could not be written else
    script = script_from_json(text)
    output = _Output()
    if "sigterm" in script.ignores:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stderr.write(script.stderr)
    sys.stderr.flush()
    output.put(script.banner.encode("latin-1"))
    player = Player(script, output.put)
    signal.signal(signal.SIGUSR1, partial(_change, player))
    for line in sys.stdin.buffer:
        player.handle(json.loads(line), output.put)
    while "eof" in script.ignores:
        signal.pause()
    os._exit(0)  # at once, whatever calls are still under way in threads


def _change(player: Player, *_: Any) -> None:
    threading.Thread(target=player.change_list, daemon=True).start()


class _Output:
    """The standard output, one writer at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def put(self, data: bytes) -> None:
        with self._lock:
            while data:
                data = data[os.write(_STDOUT, data) :]


if __name__ == "__main__":
    main(sys.argv[1])
