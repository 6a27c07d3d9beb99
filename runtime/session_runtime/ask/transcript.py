"""The messages of one ask as they grow; what was sent changes only where there is no room for it."""

from collections.abc import Iterable, Sequence

from session_runtime.types import Message, ToolResult


class Transcript:
    """What the model has been shown, and the part of it that the caller keeps as history.

    ``opening`` (prompt, directory, prefetch, earlier history) is only sent; ``question`` and all
    turns are also returned as ``new_messages`` (ASK-1). A nudge is sent but never kept. ``question_at`` is
    where the question begins.
    """

    def __init__(self, opening: Iterable[Message], question: Iterable[Message]) -> None:
        self._kept = list(question)
        self._sent = [*opening, *self._kept]
        self.question_at = len(self._sent) - len(self._kept)

    @property
    def sent(self) -> tuple[Message, ...]:
        """All messages for the next model request, oldest first."""
        return tuple(self._sent)

    @property
    def kept(self) -> tuple[Message, ...]:
        """The question and the turns so far."""
        return tuple(self._kept)

    def add_turn(self, reply: Message, results: Sequence[ToolResult]) -> None:
        """Append a reply and the one result of each of its calls, in call order (ASK-4)."""
        turn = [reply, *(result_message(result) for result in results)]
        self._sent += turn
        self._kept += turn

    def replace_sent(self, messages: Iterable[Message]) -> None:
        """Send this from now on; what the caller keeps stays whole."""
        kept = len(self._sent) - self.question_at
        self._sent = list(messages)
        self.question_at = len(self._sent) - kept

    def add_nudge(self, reply: Message, nudge: str) -> None:
        """Append prose that was not accepted and why; neither is kept as history."""
        self._sent += [reply, Message("user", nudge)]


def result_message(result: ToolResult) -> Message:
    """The message that carries a result back to the model."""
    failed = result.status != "ok"
    return Message("tool", result.content, tool_call_id=result.call_id, is_error=failed)
