"""Configurations of servers that play scripts, for tests with real processes."""

import json
import os
from pathlib import Path

from session_runtime.testing.mcp_servers.raw import raw_server
from session_runtime.testing.mcp_servers.script import Script


def server(name: str, script: Script | None = None, **settings: object) -> str:
    """The table of a server that plays a script."""
    program, args = raw_server(script)
    return table(name, command=program, args=list(args), **settings)


def table(name: str, **settings: object) -> str:
    """The table of any server."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join([f"[mcp.servers.{name}]", *lines, ""])


def alive(pid: int) -> bool:
    """Whether a process runs, as no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def environment(pid: int) -> bytes:
    """The environment that a process was started with."""
    return Path(f"/proc/{pid}/environ").read_bytes()


def open_handles() -> int:
    """How many handles this process has open."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a path for each would open one more
