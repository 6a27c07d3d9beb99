"""Starts ``session-runtime serve`` in a process of its own and reads what it costs."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class Daemon:
    """A daemon that serves at ``url``; ``log`` is what it wrote until then."""

    process: subprocess.Popen[bytes]
    url: str
    log: str

    def cpu_s(self) -> float:
        """Processor time of all its threads so far, in seconds; counted in hundredths."""
        return cpu_s(self.process.pid)


def cpu_s(pid: int) -> float:
    """Processor time of a process so far, in seconds; counted in hundredths."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def memory_bytes(pid: int) -> int:
    """The resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) * 1024


@contextmanager
def daemon(config: Path, env: Mapping[str, str] = _NOTHING) -> Iterator[Daemon]:
    """Serve ``config`` on a free port with nothing in the environment but ``env``."""
    command = [sys.executable, "-m", "session_runtime", "serve"]
    process = subprocess.Popen(
        [*command, "--config", str(config), "--port", "0"],
        stderr=subprocess.PIPE,
        env={**bare_environment(), **env},
    )
    try:
        yield _served(process)
    finally:
        process.kill()
        process.wait()


def bare_environment() -> dict[str, str]:
    """Nothing that could configure the daemon."""
    return {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}


def _served(process: subprocess.Popen[bytes]) -> Daemon:
    """Wait until it serves; from then on its log is thrown away, so that it never waits for us."""
    assert process.stderr is not None
    log = ""
    for line in process.stderr:
        log += line.decode()
        if found := re.search(r"serving on (\S+)", log):
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return Daemon(process, found[1], log)
    sys.exit(f"the daemon did not start:\n{log}")
