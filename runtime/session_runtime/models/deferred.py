"""A model whose code is imported when it is asked for the first time."""

from collections.abc import Callable

from session_runtime.models.base import Model, ModelReply, ModelRequest, OnText
from session_runtime.threads import in_thread


class DeferredModel:
    """Another model, which ``load`` gives; it is called in a thread, maybe twice, and only one is kept."""

    def __init__(self, load: Callable[[], Model]) -> None:
        self._load = load
        self._model: Model | None = None

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """See ``Model``."""
        if self._model is None:
            loaded = await in_thread("import a model", self._load)
            self._model = self._model or loaded
        return await self._model.reply(request, on_text)

    async def aclose(self) -> None:
        """Close the model, if it was ever asked."""
        if self._model is not None:
            await self._model.aclose()
