"""Writes events, results and messages as plain data; which of them there are is up to ``ask``."""

from typing import Any, assert_never

from session_runtime.direct import Called
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskRequest,
    AskResult,
    AskStarted,
    ConfirmationRequired,
    Content,
    ErrorInfo,
    ImagePart,
    Message,
    MessageSent,
    Notice,
    PendingCall,
    PrefetchFinished,
    TextDelta,
    TextPart,
    ToolCall,
    ToolFinished,
    ToolProgress,
    ToolsLoaded,
    ToolStarted,
    TurnStarted,
    Usage,
)


def message_to_json(message: Message) -> dict[str, Any]:
    """One message as chat APIs write it; ``message_from_json`` reads it back unchanged."""
    data: dict[str, Any] = {
        **message.extra,
        "role": message.role,
        "content": _content_to_json(message.content),
    }
    if message.tool_calls:
        data["tool_calls"] = [_call_to_json(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    if message.is_error:
        data["is_error"] = True
    return data


def request_to_json(request: AskRequest) -> dict[str, Any]:
    """A question as ``request_from_json`` reads it; what a request leaves open is not there."""
    who = request.identity
    identity = {
        "user": who.user,
        "roles": None if who.roles is None else sorted(who.roles),
        "channel": who.channel,
        "group": who.group,
    }
    data: dict[str, Any] = {
        "text": request.text,
        "messages": [message_to_json(message) for message in request.messages],
        "history": [message_to_json(message) for message in request.history],
        "instructions": request.instructions,
        "identity": {name: value for name, value in identity.items() if value is not None},
        "conversation": request.conversation,
        "model": request.model,
        "deadline_s": request.deadline_s,
        "metadata": dict(request.metadata),
        "silent": request.silent,
        "confirmations": list(request.confirmations),
        "declined": list(request.declined),
    }
    return {name: value for name, value in data.items() if value not in (None, [], {}, False)}


def result_to_json(result: AskResult) -> dict[str, Any]:
    """How an ask ended (INT-2); what it does not have is left out."""
    data: dict[str, Any] = {
        "ask_id": result.ask_id,
        "outcome": result.outcome,
        "text": result.text,
        "messages": list(result.messages),
        "new_messages": [message_to_json(message) for message in result.new_messages],
        "usage": usage_to_json(result.usage),
        "steps": result.steps,
        "loaded_tools": list(result.loaded_tools),
        "generation": result.generation,
    }
    if result.error is not None:
        data["error"] = error_to_json(result.error)
    if result.pending:
        data["pending"] = [_pending_to_json(call) for call in result.pending]
    if result.cut_off is not None:
        data["cut_off"] = result.cut_off
    if result.called is not None:
        data["call"] = _called_to_json(result.called)
    if result.refused:
        data["refused"] = True
    return data


def invoked_to_json(result: AskResult) -> dict[str, Any]:
    """What came of a tool that was called by its name: ``ok``, and then ``result`` or ``error`` (NET-1f)."""
    called = result.called
    data: dict[str, Any] = {
        "ok": called is not None and called.ok,
        "ask_id": result.ask_id,
        "generation": result.generation,
    }
    if called is not None:
        data |= _called_to_json(called)
    if result.error is not None:
        data["error"] = error_to_json(result.error)
    if result.pending:
        data["pending"] = [_pending_to_json(call) for call in result.pending]
    return data


def _called_to_json(called: Called) -> dict[str, Any]:
    """One call; ``result`` is there if it went well, ``structured`` and ``whole_chars`` if there are any."""
    data: dict[str, Any] = {
        "ok": called.ok,
        "tool": called.tool,
        "attempts": called.attempts,
        "duration_ms": round(called.duration_s * 1000, 3),
    }
    if called.ok:
        data["result"] = called.text
    if called.structured is not None:
        data["structured"] = dict(called.structured)
    if called.whole_chars is not None:
        data["whole_chars"] = called.whole_chars
    return data


def usage_to_json(usage: Usage) -> dict[str, Any]:
    """Token counts, with their total; ``estimated`` if the provider did not count."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "model_calls": usage.model_calls,
        "estimated": usage.estimated,
    }


def error_to_json(error: ErrorInfo) -> dict[str, Any]:
    """Why something did not go well; ``retry_after_s`` is there only if the wait is known."""
    data: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "retryable": error.retryable,
    }
    if error.retry_after_s is not None:
        data["retry_after_s"] = error.retry_after_s
    return data


def event_to_json(event: AskEvent, lost: int = 0) -> dict[str, Any]:
    """One event (INT-3); ``lost`` events before it were dropped because the reader fell behind."""
    data = {"type": event.type, "ask_id": event.ask_id, "seq": event.seq, **_event_body(event)}
    if event.agent is not None:
        data["agent"] = event.agent
    if lost:
        data["lost"] = lost
    return data


def _event_body(event: AskEvent) -> dict[str, Any]:
    match event:
        case AskStarted():
            return {"generation": event.generation, "model": event.model}
        case PrefetchFinished():
            return {"ok": list(event.ok), "failed": dict(event.failed)}
        case TurnStarted():
            return {
                "step": event.step,
                "exposed": list(event.exposed),
                "model": event.model,
                "attempt": event.attempt,
            }
        case TextDelta() | Notice() | MessageSent():
            return {"text": event.text}
        case ToolsLoaded():
            return {"names": list(event.names)}
        case ToolStarted() | ToolProgress() | ToolFinished():
            return _tool_event_body(event)
        case ConfirmationRequired():
            return _pending_to_json(event.pending)
        case AskFinished():
            return {"result": result_to_json(event.result)}
        case _:
            assert_never(event)


def _tool_event_body(event: ToolStarted | ToolProgress | ToolFinished) -> dict[str, Any]:
    body: dict[str, Any]
    match event:
        case ToolStarted():
            body = {"name": event.name, "arguments": dict(event.arguments)}
        case ToolProgress():
            body = {"done": event.done, "total": event.total, "message": event.message}
        case ToolFinished():
            body = {"name": event.name, "status": event.status}
            if event.error_code is not None:
                body["error_code"] = event.error_code
        case _:
            assert_never(event)
    return {"call_id": event.call_id, **body}


def _pending_to_json(call: PendingCall) -> dict[str, Any]:
    return {
        "token": call.token,
        "tool": call.tool,
        "arguments": dict(call.arguments),
        "call_id": call.call_id,
        "expires_at": call.expires_at,
    }


def _content_to_json(content: Content | None) -> object:
    if content is None or isinstance(content, str):
        return content
    return [_part_to_json(part) for part in content]


def _part_to_json(part: TextPart | ImagePart) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart(detail=None):
            return {"type": "image_url", "image_url": {"url": part.url}}
        case ImagePart():
            return {"type": "image_url", "image_url": {"url": part.url, "detail": part.detail}}
        case _:
            assert_never(part)


def _call_to_json(call: ToolCall) -> dict[str, Any]:
    data: dict[str, Any] = {
        **call.extra,
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
    if call.recovered:
        data["recovered"] = True
    return data
