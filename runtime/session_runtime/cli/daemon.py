"""How commands that steer a running daemon find it: by its state directory."""

import functools
from collections.abc import Callable
from typing import Any

from session_runtime.cli.options import Files, daemon_file_options
from session_runtime.cli.reading import state_dir_of
from session_runtime.client.control import ControlClient


def daemon_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a daemon, which the command gets as its argument ``daemon``."""

    @daemon_file_options
    @functools.wraps(function)
    def with_daemon(files: Files, **others: Any) -> Any:
        return function(daemon=daemon_of(files), **others)

    return with_daemon


def daemon_of(files: Files) -> ControlClient:
    """The daemon whose state is where the configuration says, even if that is wrong elsewhere."""
    return ControlClient(state_dir_of(files))
