"""What a daemon needs of its machine: clock, watching, ports, state directory, disk, open files (REL-5)."""

import importlib.util
import os
import resource
import shutil
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final

from session_runtime.app.doctor.finding import Finding
from session_runtime.app.open_files import expected_load, wanted_files
from session_runtime.app.serve import bound
from session_runtime.config.fingerprint import is_mount_point
from session_runtime.config.settings import Settings
from session_runtime.errors import StartError

INOTIFY: Final = Path("/proc/sys/fs/inotify")
MOST_FOLDERS: Final = 200_000
LEAST_FREE_BYTES: Final = 100 * 1024 * 1024
AHEAD_S: Final = 120.0
_MIB: Final = 1024 * 1024
_SHARE: Final = 0.8

_EXTRAS: Final[Mapping[str, tuple[str, Callable[[Settings], bool]]]] = MappingProxyType(
    {
        "mcp": ("mcp", lambda settings: bool(settings.mcp.servers) or settings.http.mcp),
        "mqtt": ("aiomqtt", lambda settings: settings.mqtt.enabled),
        "otel": (
            "opentelemetry.exporter.otlp.proto.http.trace_exporter",
            lambda settings: settings.otel.enabled,
        ),
        "web": ("selectolax", lambda settings: settings.web.enabled),
    }
)
"""Each extra with the module that it brings, and what needs it."""


def machine(settings: Settings, config: Path, *, running: bool) -> Iterator[Finding]:
    """All of it; ``running`` says that a daemon has the state directory and the port already."""
    state_dir = settings.runtime.state_dir
    yield clock(state_dir, time.time())
    yield from watching(settings, config)
    yield port(settings, running=running)
    yield state(state_dir)
    if not running:
        yield from owner(state_dir, config)
    yield from disks(settings)
    yield open_files(settings, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    yield from extras(settings)


def clock(state_dir: Path, now: float) -> Finding:
    """Whether the clock is behind what was written here, or behind this very program."""
    written = [Path(__file__), *_some_files(state_dir)]
    newest_s, newest = max((_written_at(path), path) for path in written)
    ahead_s = newest_s - now
    told = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if ahead_s <= AHEAD_S:
        return Finding("clock", "ok", told)
    return Finding(
        "clock",
        "warn",
        f"{told}, but {newest} was written {ahead_s:.0f} s later",
        "set the clock (NTP): signatures, deadlines over MQTT and the order of records rely on it",
    )


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0  # it went meanwhile


def _some_files(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            plain = (entry for entry in entries if entry.is_file(follow_symlinks=False))
            yield from [Path(entry.path) for entry in islice(plain, 1_000)]
    except OSError:
        return


def watching(settings: Settings, config: Path) -> Iterator[Finding]:
    """Whether edits will be noticed."""
    if is_mount_point(config):
        yield Finding(
            "watching",
            "warn",
            f"{config} is itself a mount point: a file that is put in its place outside is not seen",
            "mount its folder instead, or edit it in place",
        )
    mode = settings.runtime.watch
    if mode == "off":
        yield Finding(
            "watching",
            "warn",
            "edits are not noticed (runtime.watch)",
            'set runtime.watch = "events", or reload by session-runtime config reload',
        )
    elif mode == "polling":
        every = f"everything is looked at every {settings.runtime.recheck_s:g} s"
        yield Finding("watching", "ok", every)
    else:
        yield _events(settings, config)


def _events(settings: Settings, config: Path) -> Finding:
    folders = 1 + sum(_folders(path) for path in settings.handlers.paths)
    allowed = _limit("max_user_watches")
    told = f"{folders} folders beside {config} are watched"
    if allowed is None:
        return Finding("watching", "ok", f"{told}; this system tells no limit of them")
    if folders < allowed * _SHARE:
        return Finding("watching", "ok", f"{told}, the system allows {allowed}")
    return Finding(
        "watching",
        "warn",
        f"{told}, and the system allows all programs of this user {allowed}",
        'raise fs.inotify.max_user_watches (sysctl), or set runtime.watch = "polling"',
    )


def _folders(root: Path) -> int:
    found = (1 for _ in os.walk(root))
    return sum(islice(found, MOST_FOLDERS))


def _limit(name: str) -> int | None:
    try:
        return int((INOTIFY / name).read_text("ascii"))
    except (OSError, ValueError):
        return None


def port(settings: Settings, *, running: bool) -> Finding:
    """Whether the port is free, or taken by whom it is for."""
    host, number = settings.http.host, settings.http.port
    try:
        with bound(host, number):
            free = f"{host}:{number} is free" if number else f"any free one of {host}"
    except StartError as error:
        if running:
            return Finding("port", "ok", f"{host}:{number} is taken, as a daemon runs")
        found, _, way_out = str(error).partition("; ")
        perhaps = (
            "perhaps the daemon of this file has it, with another state folder: name that by --state-dir;"
            f" else {way_out}"
        )
        return Finding("port", "fail", found, perhaps)
    if running and number:
        return Finding(
            "port",
            "warn",
            f"{free}, although a daemon runs",
            "it listens elsewhere: http.host and http.port act after a restart, or were given to serve",
        )
    return Finding("port", "ok", free)


def state(folder: Path) -> Finding:
    """Whether the state directory can be used, and by nobody else."""
    if not folder.exists():
        above = _nearest(folder)
        if os.access(above, os.W_OK | os.X_OK):
            return Finding("state directory", "ok", f"{folder} will be made at the start")
        return Finding(
            "state directory",
            "fail",
            f"{folder} is not there, and {above} may not be written by this user",
            f"make it for this user (mkdir, chown {os.getuid()}), or set runtime.state_dir",
        )
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Finding(
            "state directory",
            "fail",
            f"{folder} is no folder that this user may read and write",
            f"chown it to the user of the daemon ({os.getuid()}), or set runtime.state_dir",
        )
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        return Finding(
            "state directory",
            "warn",
            f"{folder} may be written by others (mode {mode:04o})",
            f"chmod 0700 {folder}",
        )
    return Finding("state directory", "ok", f"{folder} (mode {mode:04o})")


def owner(state_dir: Path, config: Path) -> Iterator[Finding]:
    """Whether the state is of another user than the configuration; a file of root is for every daemon."""
    try:
        made_by, meant_for = state_dir.stat().st_uid, config.stat().st_uid
    except OSError:
        return  # told elsewhere, or nothing is there yet
    if meant_for in (0, made_by):
        return
    yield Finding(
        "state directory",
        "warn",
        f"{state_dir} belongs to uid {made_by}, and {config} to uid {meant_for}",
        f"if the daemon runs as uid {meant_for}: chown -R {meant_for} {state_dir}",
    )


def disks(settings: Settings) -> Iterator[Finding]:
    """Whether there is room for state, traces and audit records up to their bounds, wherever they are."""
    folders: dict[int, Path] = {}
    wanted: Counter[int] = Counter()
    for folder, size in _written(settings):
        nearest = _nearest(folder)
        device = _device(nearest)
        folders.setdefault(device, nearest)
        wanted[device] += size
    for device, folder in folders.items():
        yield _disk(folder, wanted[device])


def _written(settings: Settings) -> Iterator[tuple[Path, int]]:
    """Folders that a daemon writes to, and how many bytes there may be; 0 is not much."""
    state_dir, trace, audit = settings.runtime.state_dir, settings.trace, settings.audit
    yield state_dir, 0
    if trace.enabled and not _is_special(trace.path):
        yield trace.path.parent, trace.max_bytes * (trace.keep + 1)
    if audit.enabled:
        yield audit.path or state_dir / "audit", audit.max_bytes * (audit.keep + 1)


def _is_special(path: Path) -> bool:
    """Whether what is written there takes no room, as in a pipe."""
    return os.path.exists(path) and not os.path.isfile(path)  # noqa: PTH110, PTH113 - they raise nothing


def _disk(folder: Path, wanted: int) -> Finding:
    free = _free(folder)
    told = f"{free // _MIB} MiB are free at {folder}"
    if free < LEAST_FREE_BYTES:
        return Finding(
            "disk",
            "fail",
            told,
            "free space: traces are lost without, and destructive calls that cannot be recorded are refused",
        )
    if free < wanted:
        return Finding(
            "disk",
            "warn",
            f"{told}; traces and audit may grow to {wanted // _MIB} MiB there",
            "free space, or lower max_bytes and keep of [trace] and [audit]",
        )
    return Finding("disk", "ok", told)


def _device(folder: Path) -> int:
    return folder.stat().st_dev


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def open_files(settings: Settings, hard: int) -> Finding:
    """Whether the hard limit of open files allows what may run at once."""
    asks, sessions, waiting = expected_load(settings)
    wanted = wanted_files(asks, sessions, waiting)
    if hard in (resource.RLIM_INFINITY, -1) or hard >= wanted:
        return Finding("open files", "ok", f"{wanted} may be needed, the hard limit allows them")
    return Finding(
        "open files",
        "warn",
        f"{wanted} may be needed for {asks} asks at once, the hard limit is {hard}",
        "raise it (ulimit -Hn, LimitNOFILE of a service), or lower runtime.max_concurrent_asks",
    )


def extras(settings: Settings) -> Iterator[Finding]:
    """Whether what is configured is installed."""
    for name, (module, is_wanted) in _EXTRAS.items():
        if not is_wanted(settings):
            continue
        if is_installed(module):
            yield Finding("extras", "ok", f"what {name} needs is installed")
        else:
            yield Finding(
                "extras",
                "fail",
                f"{module} is not installed, and the configuration needs it",
                f"pip install '.[{name}]' in the source tree of session-runtime",
            )


def is_installed(module: str) -> bool:
    """Whether a module could be imported; nothing of it is run but the packages around it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _nearest(path: Path) -> Path:
    """The folder itself, or the nearest one above it that there is and that may be looked at."""
    return next(each for each in (path, *path.parents) if os.path.exists(each))  # noqa: PTH110 - it raises nothing
