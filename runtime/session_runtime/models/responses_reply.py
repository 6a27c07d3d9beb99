"""Turns the events of a Responses stream, or a whole response, into a reply; ``reading`` finds the events.

The response that ends the answer is the truth. What came before it counts where that is empty, because
some gateways stream everything and leave it out at the end.
"""

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from operator import itemgetter
from typing import Any, Final

from session_runtime.errors import PermanentError
from session_runtime.models import faults
from session_runtime.models.base import INCOMPLETE, ModelReply, plain_reason
from session_runtime.models.call_parts import CallAssembly
from session_runtime.models.places import objects
from session_runtime.models.reading import State
from session_runtime.models.responses_items import keep_items, text_of
from session_runtime.models.usage import read_usage
from session_runtime.registry.names import WireNames

MAX_ITEMS: Final = 1_000
_MAX_ID_CHARS: Final = 1_000
_CUT_SHORT: Final = frozenset({"length", "content_filter"})
_NO_ANSWER: Final = frozenset({"failed", "cancelled", "queued", "in_progress"})
_MARKS: Final = frozenset({"type", "id", "call_id", "status"})
_UNFINISHED: Final = frozenset({"in_progress", "incomplete"})


class ResponseAssembly:
    """Gathers one reply; unknown events, items and fields are passed over.

    A field with a wrong type is treated as absent. Error objects never come here. An item that is
    done twice counts once, in its last form. PermanentError for more than MAX_ITEMS items.
    """

    def __init__(self, endpoint: faults.Endpoint) -> None:
        self._endpoint = endpoint
        self._texts: list[str] = []
        self._pieces = CallAssembly()
        self._call_ids: dict[str, str] = {}
        self._done: dict[str, tuple[int, dict[str, Any]]] = {}
        self._response: dict[str, Any] | None = None

    @property
    def state(self) -> State:
        """The response ends a stream; without it the stream was cut."""
        return "open" if self._response is None else "over"

    @property
    def response_id(self) -> str | None:
        """The id that the next turn may chain to; None if the service keeps nothing under one."""
        response = self._response or {}
        response_id = response.get("id")
        if not isinstance(response_id, str) or response.get("store") is False:
            return None
        return response_id if 0 < len(response_id) <= _MAX_ID_CHARS else None

    def add(self, chunk: dict[str, Any]) -> str:
        """Take one event; returns the text it brought."""
        match chunk.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                return self._add_text(chunk.get("delta"))
            case "response.output_item.added":
                self._begin_call(chunk)
            case "response.output_item.done":
                self._end_item(chunk)
            case "response.function_call_arguments.delta":
                self._pieces.add_piece(self._piece(chunk, chunk.get("delta")))
            case "response.function_call_arguments.done":
                self._pieces.add_end(self._piece(chunk, chunk.get("arguments")))
            case "response.completed" | "response.incomplete":
                return self._finish(chunk.get("response"))
            case "response.failed":
                raise self._no_answer("failed")
        return ""

    def add_whole(self, document: dict[str, Any]) -> str:
        """Take a response that is not streamed; returns its text."""
        if document.get("object") != "response" and "output" not in document:
            raise faults.not_an_api(self._endpoint, "a JSON object without 'output'")
        return self._finish(document)

    def add_end_mark(self) -> None:
        """A mark at the end of the stream says nothing about the response."""

    def reply(self, names: WireNames, taken_ids: Set[str], origin: str) -> ModelReply:
        """The reply with canonical names and with ids that are not in ``taken_ids``."""
        response = self._response or {}
        gathered = self._calls()
        calls = gathered.calls(taken_ids)
        cut = gathered.unfinished or gathered.doubtful or any(map(_is_unfinished, self._output()))
        return ModelReply(
            text=_joined(self._output()) or _joined(self._done_items()) or "".join(self._texts),
            calls=tuple(replace(call, name=names.decode(call.name)) for call in calls),
            usage=read_usage(response.get("usage")),
            finish_reason=_finish_reason(response, called=bool(calls), cut=cut),
            extra=keep_items(self._done_items() or self._output(), origin),
        )

    def renamed(self, taken_ids: Set[str]) -> Mapping[str, str]:
        """By the ids of the calls of ``reply``, those that the service knows them by, where they differ."""
        calls = self._calls()
        pairs = zip(calls.calls(taken_ids), calls.sent_ids(), strict=True)
        return {call.id: sent for call, sent in pairs if sent and sent != call.id}

    def _output(self) -> list[dict[str, Any]]:
        return objects((self._response or {}).get("output"))

    def _done_items(self) -> list[dict[str, Any]]:
        """The items that were done, in the order of the output."""
        return [item for _, item in sorted(self._done.values(), key=itemgetter(0))]

    def _calls(self) -> CallAssembly:
        """The calls of the response; else of the items that were done or of the pieces, if those are more.

        With the arguments that only the others tell.
        """
        whole, done = _whole_calls(self._output()), _whole_calls(self._done_items())
        if whole.sent_ids():
            whole.complete_from(done)
            whole.complete_from(self._pieces)
            return whole
        if len(done.sent_ids()) >= len(self._pieces.sent_ids()):
            done.complete_from(self._pieces)
            return done
        self._pieces.complete_from(done)
        return self._pieces

    def _add_text(self, text: object) -> str:
        if not isinstance(text, str):
            return ""
        self._texts.append(text)
        return text

    def _begin_call(self, event: Mapping[str, Any]) -> None:
        item = event.get("item")
        if not isinstance(item, dict) or item.get("type") != "function_call":
            return
        self._pieces.add_piece({**_begun_call(item), "index": event.get("output_index")})
        item_id, call_id = item.get("id"), item.get("call_id")
        if isinstance(item_id, str) and isinstance(call_id, str):
            known = self._call_ids.setdefault(item_id, call_id)
            self._call_ids[item_id] = call_id if known == call_id else ""
        _check_count(len(self._call_ids))

    def _end_item(self, event: Mapping[str, Any]) -> None:
        item, index = event.get("item"), event.get("output_index")
        if not isinstance(item, dict):
            return
        place = index if isinstance(index, int) else len(self._done)
        self._done[_identity(item)] = (place, item)
        _check_count(len(self._done))

    def _piece(self, event: Mapping[str, Any], arguments: object) -> dict[str, Any]:
        """Marked by its place in the output and by the call that the item's id leads to, if to one alone."""
        marks = {
            "id": self._call_ids.get(str(event.get("item_id"))),
            "index": event.get("output_index"),
        }
        return {**marks, "function": {"name": event.get("name"), "arguments": arguments}}

    def _no_answer(self, status: str) -> faults.ModelFault:
        return faults.broken_reply(self._endpoint, f"a response with the status {status}")

    def _finish(self, response: object) -> str:
        response = response if isinstance(response, dict) else {}
        status = response.get("status")
        if isinstance(status, str) and status in _NO_ANSWER:
            raise self._no_answer(status)
        self._response = response
        text, told = _joined(self._output()) or _joined(self._done_items()), "".join(self._texts)
        return text.removeprefix(told) if text.startswith(told) else ""


def _check_count(items: int) -> None:
    if items > MAX_ITEMS:
        raise PermanentError(
            f"the model's response holds more than {MAX_ITEMS} items", code="model.reply_too_large"
        )


def _identity(item: Mapping[str, Any]) -> str:
    """Equal for an item that is done again: by its id and that of its call, else by all it holds."""
    marks = [item.get(name) for name in ("type", "id", "call_id")] if item.get("id") else item
    return json.dumps(marks, sort_keys=True)


def _is_unfinished(item: Mapping[str, Any]) -> bool:
    """Whether the service stopped in the middle of this call."""
    return item.get("type") == "function_call" and str(item.get("status")) in _UNFINISHED


def _joined(items: Iterable[Mapping[str, Any]]) -> str:
    return "".join(text_of(item) for item in items if item.get("type") == "message")


def _whole_calls(items: Iterable[Mapping[str, Any]]) -> CallAssembly:
    calls = CallAssembly()
    for item in items:
        if item.get("type") == "function_call":
            calls.add_whole(_call(item))
    return calls


def _call(item: Mapping[str, Any]) -> dict[str, Any]:
    """A call in the form of chat completions; the id of the item links nothing and is dropped."""
    function = {name: value for name, value in item.items() if name not in _MARKS}
    return {"id": item.get("call_id"), "function": function}


def _begun_call(item: Mapping[str, Any]) -> dict[str, Any]:
    """A call that is announced; an empty object stands for arguments that are still to come."""
    arguments = item.get("arguments")
    empty = arguments == {} or (isinstance(arguments, str) and arguments.strip() == "{}")
    if empty and item.get("status") != "completed":
        return _call({**item, "arguments": None})
    return _call(item)


def _finish_reason(response: Mapping[str, Any], *, called: bool, cut: bool) -> str:
    """Why the model stopped, in the words of chat completions."""
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if isinstance(reason, str):
        known = plain_reason(reason)
        return INCOMPLETE if called and known not in _CUT_SHORT else known
    if cut or response.get("status") == "incomplete":
        return INCOMPLETE
    return "tool_calls" if called else "stop"
