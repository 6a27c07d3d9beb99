"""Reads the configuration that a process was started with, as often as it is asked to."""

import contextlib
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from session_runtime.config.load import ConfigSnapshot, find_state_dir, load
from session_runtime.config.resolve import Absent
from session_runtime.errors import ConfigError
from session_runtime.types import NOTHING

DEFAULT_CONFIG: Final = Path("config.toml")
CONFIG_VARIABLE: Final = "SESSION_RUNTIME_CONFIG"
ENV_FILE_VARIABLE: Final = "SESSION_RUNTIME_ENV_FILE"

_HEADER: Final = re.compile(r"\s*\[\s*([\w.-]+)\s*\]\s*(?:#.*)?")
_STATE_DIR: Final = re.compile(r"\s*state_dir\s*=")


class ConfigReader:
    """All sources of one process: its file, its environment as it was, what it was told explicitly.

    What the arguments mean is told at ``Runtime.open``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        explicit: Mapping[str, object] = NOTHING,
        env_file: str | os.PathLike[str] | None = None,
    ) -> None:
        self._env = dict(os.environ if env is None else env)
        file, self._named = config_path(path, self._env)
        self.path = file.absolute()
        self._explicit = explicit
        dotenv = env_file or self._env.get(ENV_FILE_VARIABLE)
        self._dotenv = Path(dotenv).absolute() if dotenv else None

    def __call__(
        self,
        text: bytes | None = None,
        *,
        must_exist: bool = False,
        absent: Absent = "fault",
    ) -> ConfigSnapshot:
        """Read and validate everything without opening anything; raises ConfigError.

        ``text`` stands in for the content of the file; one that ``must_exist``, or that somebody named,
        may not be absent (CFG-6). ``absent`` tells what a secret is that cannot be reached.
        """
        return load(
            self.path,
            named=self._named or must_exist,
            env=self._env,
            explicit=self._explicit,
            dotenv=self._dotenv,
            text=text,
            absent=absent,
        )

    def state_dir(self, text: bytes | None = None) -> Path:
        """Find ``runtime.state_dir`` whatever else is wrong, so that a daemon can be reached (REL-9).

        In a file that is no TOML, the line that gives it counts; one that is not there gives none, and a
        ``.env`` file that cannot be read is left out. ``text``, which is TOML, stands in for what is in the
        file. Raises ConfigError if nothing is left.
        """
        find = partial(
            find_state_dir, self.path, named=False, env=self._env, explicit=self._explicit
        )
        if text is not None:
            return find(dotenv=self._dotenv, text=text)
        line = f"[runtime]\n{_state_dir_line(self.path)}\n".encode()
        ways = (
            partial(find, dotenv=self._dotenv),
            partial(find, dotenv=self._dotenv, text=line),
            find,
        )
        for way in ways:
            with contextlib.suppress(ConfigError):
                return way()
        return find(text=line)


def _state_dir_line(file: Path) -> str:
    """The line that gives runtime.state_dir in a file that may be no TOML; empty if there is none."""
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    table = ""
    for line in text.splitlines():
        if header := _HEADER.fullmatch(line):
            table = header[1]
        elif table == "runtime" and _STATE_DIR.match(line):
            return line
    return ""


def config_path(path: str | os.PathLike[str] | None, env: Mapping[str, str]) -> tuple[Path, bool]:
    """Which file to read, and whether somebody named it: then it has to exist (CFG-6)."""
    named = path or env.get(CONFIG_VARIABLE)
    return (Path(named), True) if named else (DEFAULT_CONFIG, False)
