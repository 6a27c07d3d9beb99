"""Lets a limited number of requests of one profile run at once; what a request is decides the adapter."""

import asyncio

from session_runtime.models.base import Model, ModelReply, ModelRequest, OnText


class LimitedModel:
    """A model whose requests beyond ``most`` at once wait their turn, first come first served.

    Waiting is bounded by whoever waits; a waiter that is cancelled gives its place up. The time limit of
    a request starts when it runs.
    """

    def __init__(self, model: Model, most: int) -> None:
        self._model = model
        self._places = asyncio.Semaphore(most)

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Wait for a place, then send the request; see ``Model`` for what it raises."""
        async with self._places:
            return await self._model.reply(request, on_text)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()
