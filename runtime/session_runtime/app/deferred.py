"""Replays of recorded asks, whose code is imported when somebody wants one (OPS-3)."""

import importlib
from collections.abc import Mapping
from typing import Any, Protocol, cast

from session_runtime.app.editor import ConfigEditor
from session_runtime.config.live import LiveConfig
from session_runtime.generation import Generations
from session_runtime.threads import in_thread


class _Preview(Protocol):
    async def of(self, text: bytes | None, most: int) -> dict[str, Any]: ...

    async def of_values(
        self, values: Mapping[str, object], most: int, *, any_key: bool
    ) -> dict[str, Any]: ...


class DeferredPreview:
    """See ``ReplayPreview``: few daemons ever replay, and a start should not import what that takes."""

    def __init__(self, live: LiveConfig, editor: ConfigEditor, generations: Generations) -> None:
        self._parts = live, editor, generations
        self._preview: _Preview | None = None

    async def of(self, text: bytes | None, most: int) -> dict[str, Any]:
        """See ``ReplayPreview.of``."""
        return await (await self._loaded()).of(text, most)

    async def of_values(
        self, values: Mapping[str, object], most: int, *, any_key: bool
    ) -> dict[str, Any]:
        """See ``ReplayPreview.of_values``."""
        return await (await self._loaded()).of_values(values, most, any_key=any_key)

    async def _loaded(self) -> _Preview:
        if self._preview is None:
            loaded = await in_thread("import replay", self._load)
            self._preview = self._preview or loaded
        return self._preview

    def _load(self) -> _Preview:
        module = importlib.import_module("session_runtime.app.preview")
        return cast(_Preview, module.ReplayPreview(*self._parts))
