"""The conversations that a Responses service keeps by the id of each response, and what it refuses."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from session_runtime.testing.conversation import Request
from session_runtime.testing.replies import RawReply, reply_error

_MAX_KEPT: Final = 1_000

Item = Mapping[str, Any]


class Chains:
    """Remembers the newest conversations; the oldest ids become unknown."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Sequence[Item]] = OrderedDict()

    def complete(self, request: Request) -> Request | RawReply:
        """The request with its whole conversation as ``input``, or how the service refuses it.

        An unknown previous id is refused with 404; with 400 a call without an output, or the reverse.
        """
        previous = request.get("previous_response_id")
        if previous is not None and previous not in self._kept:
            return reply_error(
                404,
                f"Previous response with id '{previous}' not found.",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        items = [*self._kept.get(previous or "", ()), *_items(request.get("input") or ())]
        return _unmatched(items) or {**request, "input": items}

    def keep(self, response_id: str, items: Iterable[Item]) -> None:
        """Store a conversation under the id of its last response."""
        self._kept[response_id] = tuple(items)
        if len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)


def _items(asked: str | Sequence[Item]) -> Sequence[Item]:
    return [{"role": "user", "content": asked}] if isinstance(asked, str) else asked


def _unmatched(items: Sequence[Item]) -> RawReply | None:
    """How a call without an output, or an output without a call before it, is refused."""
    waiting: list[str] = []
    for item in items:
        call_id = str(item.get("call_id"))
        if item.get("type") == "function_call":
            waiting.append(call_id)
        elif item.get("type") == "function_call_output":
            if call_id not in waiting:
                said = f"No tool call found for function call output with call_id {call_id}."
                return reply_error(400, said, param="input")
            waiting.remove(call_id)
    if not waiting:
        return None
    return reply_error(400, f"No tool output found for function call {waiting[0]}.", param="input")
