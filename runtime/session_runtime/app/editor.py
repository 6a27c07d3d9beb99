"""Edits the configuration file of a running runtime: checked by its own validator, then written and read.

How the text changes is decided in ``config.edit``, what may be changed from where in the keys (NET-3).
"""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from session_runtime.app.reader import ConfigReader
from session_runtime.config.edit import (
    Check,
    ConfigFile,
    Edit,
    keys,
    name_a_key,
    open_file,
    plan,
    write,
)
from session_runtime.config.history import History
from session_runtime.config.keys import KeyPath, dotted, parse_dotted
from session_runtime.config.live import LiveConfig
from session_runtime.config.receipt import Receipt, Trigger
from session_runtime.config.rollback import KEPT, Rollback, plan_rollback
from session_runtime.config.shape import Leaf, is_harmless, leaves, node_at
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError, RequestError, TransientError
from session_runtime.threads import in_thread

_HARMLESS: Final = tuple(path for path, leaf in leaves(()) if leaf.network)

Tags = Callable[[str], bool]
"""Tells whether who sent an edit has seen the file whose tag this is."""


class ConfigEditor:
    """The one that edits the file for others, one edit after the other."""

    def __init__(self, read: ConfigReader, live: LiveConfig, history: History) -> None:
        self._read = read
        self._live = live
        self._history = history
        self._in_turn = asyncio.Lock()
        self._secret = secrets.token_bytes(32)

    @property
    def tag(self) -> str:
        """Stands for the content of the file in force, and tells nothing about it."""
        file = self._live.snapshot.file
        return self._tag(None if file is None else file.content)

    async def set_values(
        self, values: Mapping[str, object], seen: Tags, *, any_key: bool, trigger: Trigger
    ) -> Receipt:
        """Give dotted keys new values, or REMOVED, unless ``seen`` is false for the file as it is.

        The receipt is that of the reload, or tells why nothing was written. Unless ``any_key`` may be
        changed, only harmless ones are, and nothing else comes into force with them (NET-3). Raises
        RequestError for keys that cannot be changed, TransientError for a file that is not the one seen,
        or is not the one in force, and what ``plan`` and ``write`` raise.
        """
        changes = keys(values)
        if not any_key:
            _expect_harmless(path for path in changes if node_at(path) is not None)

        def plan_values(file: ConfigFile, check: Check) -> Edit:
            return plan(file, changes, check)

        return await self._edit(plan_values, seen, any_key, trigger)

    async def try_values(self, values: Mapping[str, object], *, any_key: bool) -> Receipt:
        """Tell what ``set_values`` would come to for the file as it is; raises what that raises."""
        would_be, _ = await self.plan_values(values, any_key=any_key)
        return would_be

    async def plan_values(
        self, values: Mapping[str, object], *, any_key: bool
    ) -> tuple[Receipt, bytes | None]:
        """The same, with what the file would hold; None if that cannot be used."""
        changes = keys(values)
        if not any_key:
            _expect_harmless(path for path in changes if node_at(path) is not None)
        async with self._in_turn:
            would_be, edit = await self._tried(
                lambda file, check: plan(file, changes, check), lambda _: True, any_key
            )
        return would_be, None if edit is None else edit.content

    async def roll_back(
        self,
        number: int,
        include: Collection[str],
        seen: Tags,
        *,
        any_key: bool,
        trigger: Trigger,
    ) -> tuple[Receipt, tuple[str, ...]]:
        """Make the file say what entry ``number`` of the history says; as ``set_values``.

        Gives also the names of what stays although it differs; see ``plan_rollback``.
        """
        unknown = [name for name in include if name not in KEPT]
        if unknown:
            raise RequestError(
                f"include: {unknown[0]!r} is none of {', '.join(KEPT)}, which stay unless named"
            )
        planned: list[Rollback] = []

        def plan_back(file: ConfigFile, check: Check) -> Edit:
            planned.append(plan_rollback(file, self._history, number, check, include))
            return planned[-1].edit

        receipt = await self._edit(plan_back, seen, any_key, trigger)
        return receipt, planned[-1].left if planned else ()

    async def _edit(
        self,
        work_out: Callable[[ConfigFile, Check], Edit],
        seen: Tags,
        any_key: bool,
        trigger: Trigger,
    ) -> Receipt:
        async with self._in_turn:
            would_be, edit = await self._tried(work_out, seen, any_key)
            if edit is None:
                return would_be
            await in_thread("write configuration", partial(write, edit))
            if any_key:
                return await self._live.reload(trigger)
            return await self._live.reload_file(trigger)

    async def _tried(
        self, work_out: Callable[[ConfigFile, Check], Edit], seen: Tags, any_key: bool
    ) -> tuple[Receipt, Edit | None]:
        """Work an edit out and try it: what it would come to, and the edit if that is good."""
        tried = _Tried(self._read)
        file = await self._opened(any_key)
        self._expect_seen(file, seen, any_key)
        try:
            edit = await in_thread("plan an edit", partial(work_out, file, tried))
        except ConfigError as error:
            if tried.content is None:
                raise
            would_be = await self._live.validate(tried.content)
            return would_be if would_be.good else replace(would_be, errors=error.problems), None
        if not any_key:
            _expect_harmless(parse_dotted(each.key) for each in edit.differences)
        would_be = await self._live.validate(edit.content)
        if not would_be.good:
            return would_be, None
        if not any_key:
            self._expect_nothing_else(edit, would_be)
        return would_be, edit

    async def _opened(self, any_key: bool) -> ConfigFile:
        """Read the file; if it is just being put into force, an edit from the network waits until it is."""
        absent = self._live.snapshot.path is None
        reading = partial(open_file, self._read.path, may_be_absent=absent)
        file = await in_thread("read configuration", reading)
        if not any_key and self._tag(file.content) != self.tag:
            await self._live.settle()
        return file

    def _expect_seen(self, file: ConfigFile, seen: Tags, any_key: bool) -> None:
        """Refuse a file that the sender has not seen, or, from the network, one that is not in force."""
        pending = self._tag(file.content) != self.tag
        if seen(self._tag(file.content)) and (any_key or not pending):
            return
        if not pending:
            why = "was changed meanwhile: get the configuration again"
        elif self._live.rejected is not None:
            why = "holds an edit that is not in force: mend the file, or take the edit back"
        else:
            why = "holds an edit that is not in force: reload the configuration (POST /v1/config/reload)"
        raise TransientError(
            f"{file.place} {why}, and send this edit again then, with the new ETag",
            code="config.changed",
        )

    def _expect_nothing_else(self, edit: Edit, would_be: Receipt) -> None:
        """Refuse to bring into force what was changed elsewhere, such as a secret (NET-3)."""
        waiting = (each for each in would_be.waiting if each not in self._live.waiting)
        others = [each.key for each in (*would_be.changes, *waiting) if each.key not in edit.told]
        if others:
            raise TransientError(
                f"{', '.join(others)}: changed elsewhere, is not in force yet, and would come into force"
                " with the edit: reload the configuration (POST /v1/config/reload), and send it again then",
                code="config.changed",
            )

    def _tag(self, content: bytes | None) -> str:
        """Digest with a secret of this process, as the file may hold secrets itself (CFG-4)."""
        hasher = hashlib.blake2b(key=self._secret, digest_size=16)
        hasher.update(b"" if content is None else b"file:" + content)
        return hasher.hexdigest()


class _Tried:
    """The check of an edit, which remembers what it was given."""

    def __init__(self, read: ConfigReader) -> None:
        self._read = read
        self.content: bytes | None = None

    def __call__(self, content: bytes) -> ConfigSnapshot:
        self.content = content
        return self._read(content)


def _expect_harmless(paths: Iterable[KeyPath]) -> None:
    """Refuse keys that only who can write the file may change (NET-3)."""
    paths = list(paths)
    for path in paths:
        if not isinstance(node_at(path), Leaf) and any(_in(path, each) for each in _HARMLESS):
            raise RequestError(
                f"{dotted(path)} is a section, which cannot be changed as a whole over the network:"
                f" {name_a_key(path)}",
                code="config.not_over_network",
            )
    refused = [dotted(path) for path in paths if not is_harmless(path)]
    if refused:
        raise RequestError(
            f"{', '.join(refused)}: cannot be changed over the network, as only limits, lists, search"
            " and prompts can: edit the file on its machine",
            code="config.not_over_network",
        )


def _in(section: KeyPath, path: KeyPath) -> bool:
    return path[: len(section)] == section
