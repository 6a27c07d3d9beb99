"""The process of one server: how it is started, how it ended, and how nothing of it is left (RTE-6).

Public: ``Command``, ``start``, ``Child``, ``GRACE_S``. What is said over its pipes is decided in ``stdio``.

A daemon that is killed outright cannot end anything: then a server sees the end of its input, which is
what the protocol tells it to end for; one that ignores that lives on. (``PR_SET_PDEATHSIG`` would have to
be set between fork and exec, where a process with threads must run no code.) A process that leaves the
group it was started in (``setsid``) is out of reach as well.
"""

import asyncio
import errno
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from session_runtime.errors import PermanentError, SessionRuntimeError, TransientError
from session_runtime.threads import Worker, aside

_log = logging.getLogger(__name__)

GRACE_S: Final = 1.0
INHERITED: Final = ("PATH", "HOME", "LANG")

_BUFFERED_BYTES: Final = 256 * 1024  # of what a server says, before it has to wait for its reader
_POLL_S: Final = 0.01
_PASSING: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY})


@dataclass(frozen=True, slots=True)
class Command:
    """What is started for the server of this name.

    ``env`` is what is configured for it; of the daemon's own environment it gets ``INHERITED`` alone.
    ``cwd`` is the folder it runs in, from which a relative ``program`` with a slash is meant.
    """

    server: str
    program: str
    args: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The whole environment of the process, where ``inherited`` is the daemon's."""
        return {name: inherited[name] for name in INHERITED if name in inherited} | dict(self.env)


class Child:
    """A running process, the leader of a group of its own, with its three pipes; ``over`` waits for it."""

    def __init__(self, pid: int, over: "asyncio.Future[int]", pipes: "_Pipes") -> None:
        self.pid: Final = pid
        self.stdin: Final = pipes.stdin
        self.stdout: Final = pipes.stdout
        self.stderr: Final = pipes.stderr
        self.over: Final = over
        self._pipes = pipes
        self._ended = False  # then its number may be that of another group

    @property
    def ended(self) -> str | None:
        """How the process ended, in words; None while it runs."""
        return _in_words(self.over.result()) if self.over.done() else None

    @property
    def signs(self) -> tuple[asyncio.Future[Any], ...]:
        """One is done as soon as the process is over, or let go of its input or output."""
        return self.over, self._pipes.input_closed, self._pipes.output_closed

    async def wait(self, seconds: float | None = None) -> str | None:
        """Wait until the process is over, but not longer than this; give ``ended``."""
        await asyncio.wait((self.over,), timeout=seconds)
        return self.ended

    async def end(self, grace_s: float = GRACE_S) -> None:
        """End the process and its whole group, once; returns within three times ``grace_s``.

        Its input is closed; what is not over after ``grace_s`` gets SIGTERM, and SIGKILL after another.
        Cancelled, it kills at once. What was said last can still be read.
        """
        if self._ended:
            return
        try:
            await self._end(grace_s)
        except asyncio.CancelledError:
            self.kill()
            raise
        self._ended = True

    def kill(self) -> None:
        """Kill the whole group, unless it is gone, and ``close``; for when there is no time to ``end`` it."""
        if not self._ended:
            self._signal(signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Let go of the pipes."""
        self._pipes.close()

    async def _end(self, grace_s: float) -> None:
        self.stdin.close()
        if await self._is_gone(grace_s):
            return
        self._signal(signal.SIGTERM)
        if await self._is_gone(grace_s):
            return
        self._signal(signal.SIGKILL)
        if await self.wait(grace_s) is None:
            _log.warning("process %d does not end, not even by SIGKILL: it is left alone", self.pid)

    async def _is_gone(self, seconds: float) -> bool:
        """Wait until nothing of the group is left; False if that takes longer."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        if await self.wait(seconds) is None:
            return False
        while self._signal(0):
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; False if nobody is left in it."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # a member runs as somebody else: it is there, and out of reach
        return True


async def start(command: Command, inherited: Mapping[str, str]) -> Child:
    """Start the process, where ``inherited`` is the daemon's environment; the caller ends the Child.

    Cancelled, it leaves no process. Raises PermanentError ``mcp.command`` where the configuration or the
    machine must change, TransientError ``mcp.no_process`` where the machine has none to give just now.
    """
    env = command.environment(inherited)
    program = await aside("find a command", partial(_find, command, env))
    launching = asyncio.ensure_future(_launch(command, program, env))
    try:
        await to_the_end(launching)
    except asyncio.CancelledError:
        if not launching.cancelled() and launching.exception() is None:
            launching.result().kill()
        raise
    return launching.result()


async def _launch(command: Command, program: str, env: Mapping[str, str]) -> Child:
    """Start it in the thread that then waits for it, so that none is started that nobody waits for."""
    try:
        worker = Worker()
    except RuntimeError as error:
        raise _no_process(command, str(error)) from error
    try:
        process = await _started(worker, command, program, env)
        over = worker.run(f"wait for process {process.pid}", process.wait)
    finally:
        worker.end()
    try:
        return Child(process.pid, over, await _Pipes.of(process))
    except BaseException:
        _drop(process)
        raise


async def _started(
    worker: Worker, command: Command, program: str, env: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    starting = worker.run("start a process", partial(_start, command, program, env))
    try:
        await to_the_end(starting)
        return starting.result()
    except (OSError, ValueError) as error:
        raise _refusal(command, program, error) from error
    except asyncio.CancelledError:
        if starting.exception() is None:
            _drop(starting.result())
            worker.run("wait for a process", starting.result().wait)
        raise


async def to_the_end(work: "asyncio.Future[Any]") -> None:
    """Wait until this is done, however often the waiting is cancelled; only then be cancelled."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _start(command: Command, program: str, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [program, *command.args],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd=command.cwd,
        close_fds=True,
        start_new_session=True,
    )


def _drop(process: "subprocess.Popen[bytes]") -> None:
    """Kill what was started for somebody who no longer wants it; a thread waits for its end."""
    os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


class _Input(asyncio.StreamReaderProtocol):
    """Tells when the other end of a pipe that is written to is closed; nothing is ever read from it."""

    def __init__(self) -> None:
        super().__init__(asyncio.StreamReader())
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.closed.set_result(None)


class _Output(asyncio.StreamReaderProtocol):
    """Tells when nobody holds the other end of a pipe that is read from any more."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.closed.set_result(None)


@dataclass(frozen=True, slots=True)
class _Pipes:
    """The three pipes of a process; ``input_closed`` and ``output_closed`` tell of their other ends."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    input_closed: asyncio.Future[None]
    output_closed: asyncio.Future[None]
    transports: tuple[asyncio.BaseTransport, ...]

    @classmethod
    async def of(cls, process: "subprocess.Popen[bytes]") -> "_Pipes":
        """Take over the pipes of a process that was just started."""
        loop = asyncio.get_running_loop()
        stdout = asyncio.StreamReader(_BUFFERED_BYTES)
        stderr = asyncio.StreamReader(_BUFFERED_BYTES)
        transports: list[asyncio.BaseTransport] = []
        try:
            write, fed = await loop.connect_write_pipe(_Input, process.stdin)
            transports.append(write)
            read, said = await loop.connect_read_pipe(partial(_Output, stdout), process.stdout)
            transports.append(read)
            log, _ = await loop.connect_read_pipe(partial(_Output, stderr), process.stderr)
            transports.append(log)
        except BaseException:
            for transport in transports:
                transport.close()
            raise
        stdin = asyncio.StreamWriter(write, fed, None, loop)
        return cls(stdin, stdout, stderr, fed.closed, said.closed, tuple(transports))

    def close(self) -> None:
        """Let go of our ends, whatever is still in them."""
        for transport in self.transports:
            transport.close()


def _find(command: Command, env: Mapping[str, str]) -> str:
    """The path of the program; raises PermanentError if it or the folder is not there."""
    if not command.cwd.is_dir():
        raise _permanent(
            command, "cwd", f"the folder {str(command.cwd)!r} is not there: make it, or set another"
        )
    if "/" in command.program:
        return _checked(command, command.cwd / command.program)
    path = env.get("PATH", os.defpath)
    found = shutil.which(command.program, path=path)
    if found is None:
        raise _permanent(
            command,
            "command",
            f"{command.program!r} was not found by PATH: {_way_out(command)}; PATH is {path!r}",
        )
    return str(Path(found).absolute())


def _way_out(command: Command) -> str:
    if len(command.program.split()) > 1:
        return "give the program alone, and the words after it as args"
    return "install it, correct its name, or give its whole path"


def _checked(command: Command, program: Path) -> str:
    if not program.is_file():
        raise _permanent(
            command,
            "command",
            f"there is no file {str(program)!r}: {_way_out(command)}",
        )
    if not os.access(program, os.X_OK):
        raise _permanent(
            command,
            "command",
            f"{str(program)!r} cannot be executed: make it executable (chmod +x), or set its"
            " interpreter as command and the file as first of args",
        )
    return str(program)


def _refusal(command: Command, program: str, error: OSError | ValueError) -> SessionRuntimeError:
    """What to raise where the system did not start a program that is there."""
    if isinstance(error, OSError) and error.errno in _PASSING:
        return _no_process(command, str(error.strerror))
    match error:
        case FileNotFoundError():
            why = "the interpreter named in its first line is not there: install that, or mend the line"
        case OSError(errno=errno.ENOEXEC):
            why = "it is no program: begin it with a line #!INTERPRETER, or set its interpreter as command"
        case OSError(errno=errno.E2BIG):
            why = "args and env are too long together: shorten them"
        case OSError():
            why = f"the system refuses to start it ({error.strerror}): see to it, or set another"
        case _:
            why = "args or env hold a NUL character: take it out"
    return _permanent(command, "command", f"{program!r}: {why}")


def _no_process(command: Command, why: str) -> TransientError:
    return TransientError(
        f"mcp.servers.{command.server}.command: the system starts no further process now ({why}):"
        " it is tried again; raise the limit if that goes on",
        code="mcp.no_process",
    )


def _permanent(command: Command, key: str, why: str) -> PermanentError:
    return PermanentError(f"mcp.servers.{command.server}.{key}: {why}", code="mcp.command")


def _in_words(status: int) -> str:
    if status >= 0:
        return f"it exited with status {status}"
    try:
        return f"it was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"it was ended by signal {-status}"
