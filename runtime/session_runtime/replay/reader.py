"""Reads recorded asks from trace files, one line at a time; lines that are no record are counted.

What a record holds is decided in ``trace/record``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from session_runtime.errors import RequestError
from session_runtime.trace.record import (
    AgentRecord,
    AskRecord,
    CallRecord,
    RequestRecord,
    SearchRecord,
    ToolSearchRecord,
    TurnRecord,
)
from session_runtime.types import ErrorInfo, Identity, Outcome, Principal, Usage
from session_runtime.wire import strict_json

MAX_LINE_BYTES: Final = 32 << 20
BEFORE_COUNTING: Final = frozenset(
    {
        *("limit.calls", "limit.calls_in_turn", "tool.repeated"),
        *("tool.unknown", "tool.not_loaded", "tool.end_not_alone"),
    }
)
"""Codes of calls that were never about to run, as far as traces of earlier versions tell."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A line that is no record, and why."""

    path: Path
    line: int
    reason: str


def read_trace(path: Path) -> Iterator[AskRecord | Damaged]:
    """Give each record of a file, in its order, holding one line at a time.

    Raises RequestError if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    _skip_rest(file)
                    yield Damaged(path, number, f"it is longer than {MAX_LINE_BYTES >> 20} MiB")
                elif line.strip():
                    yield _read(path, number, line)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}") from error


def _skip_rest(file: Any) -> None:
    while (part := file.readline(MAX_LINE_BYTES)) and not part.endswith(b"\n"):
        pass


def _read(path: Path, number: int, line: bytes) -> AskRecord | Damaged:
    try:
        return record_from_json(strict_json(line.decode()))
    except UnicodeDecodeError as error:
        return Damaged(path, number, f"it is not UTF-8 at byte {error.start}")
    except KeyError as error:
        return Damaged(path, number, f"it is no record of an ask: {error} is missing")
    except (ValueError, TypeError, AttributeError) as error:
        return Damaged(path, number, f"it is no record of an ask: {error}")


def record_from_json(data: object) -> AskRecord:
    """What ``record_to_json`` wrote, as far as it was written; of a principal its name is known.

    Raises KeyError, ValueError, TypeError or AttributeError for anything else.
    """
    line = _object(data)
    known = "request" in line
    if line["outcome"] not in get_args(Outcome):
        raise ValueError(f"its outcome is {line['outcome']!r}")
    return AskRecord(
        ask_id=_text(line["ask_id"]),
        started_at=_text(line["started_at"]),
        generation=int(line["generation"]),
        config_digest=_text(line["config_digest"]),
        model=_text(line["model"]),
        principal=Principal(_text(line["principal"])),
        identity=_identity(line["identity"]),
        tool_search=_tool_search(_object(line["tool_search"])),
        prefetch=tuple(_call(each, known) for each in line["prefetch"]),
        confirmed=tuple(_call(each, known) for each in line.get("confirmed", ())),
        turns=tuple(_turn(each, known) for each in line["turns"]),
        outcome=line["outcome"],
        error=_error(line["error"]),
        usage=_usage(line["usage"]),
        duration_s=float(line["duration_s"]),
        daemon_s=float(line["daemon_s"]),
        tokens_full_list=int(line["tokens_full_list"]),
        tokens_exposed=int(line["tokens_exposed"]),
        agents=tuple(_agent(each, known) for each in line.get("agents", ())),
        invoked=_call(line["invoked"], known) if "invoked" in line else None,
        request=_request(_object(line["request"])) if known else None,
    )


def _turn(data: object, known: bool) -> TurnRecord:
    turn = _object(data)
    return TurnRecord(
        step=int(turn["step"]),
        model=_text(turn["model"]),
        exposed=_texts(turn["exposed"]),
        exposed_tokens=int(turn["exposed_tokens"]),
        attempts=int(turn["attempts"]),
        model_s=float(turn["model_s"]),
        tools_s=float(turn["tools_s"]),
        usage=_usage(turn["usage"]),
        finish_reason=_text_or_none(turn["finish_reason"]),
        calls=tuple(_call(each, known) for each in turn["calls"]),
    )


def _call(data: object, known: bool) -> CallRecord:
    call = _object(data)
    code, search = _text_or_none(call["error_code"]), call.get("search")
    counted = bool(call.get("counted")) if known else search is None and code not in BEFORE_COUNTING
    return CallRecord(
        call_id=_text(call["call_id"]),
        name=_text(call["name"]),
        arguments=call["arguments"],
        status=_text(call["status"]),
        error_code=code,
        result_digest=_text(call["result_digest"]),
        result_chars=int(call["result_chars"]),
        attempts=int(call["attempts"]),
        latency_s=float(call["latency_s"]),
        repairs=_texts(call.get("repairs", [])),
        search=None if search is None else _search(_object(search)),
        whole_chars=call.get("whole_chars"),
        counted=counted,
    )


def _search(search: Mapping[str, Any]) -> SearchRecord:
    most = search.get("max_results")
    return SearchRecord(
        _text(search["query"]),
        _texts(search["loaded"]),
        _texts(search["already_loaded"]),
        _texts(search["not_found"]),
        bool(search["truncated"]),
        None if most is None else int(most),
    )


def _agent(data: object, known: bool) -> AgentRecord:
    agent = _object(data)
    return AgentRecord(
        _text(agent["agent"]),
        _text(agent["call_id"]),
        agent["outcome"],
        _text_or_none(agent["error_code"]),
        tuple(_turn(each, known) for each in agent["turns"]),
    )


def _request(request: Mapping[str, Any]) -> RequestRecord:
    bound = request["bound"]
    return RequestRecord(
        model=_text_or_none(request["model"]),
        key=bool(request["key"]),
        bound=None if bound is None else _identity(bound),
        earlier=tuple(_texts(turn) for turn in request["earlier"]),
        revoked=_texts(request["revoked"]),
        tool=_text_or_none(request["tool"]),
    )


def _tool_search(data: Mapping[str, Any]) -> ToolSearchRecord:
    return ToolSearchRecord(
        bool(data["active"]),
        _text(data["rule"]),
        int(data["deferred"]),
        int(data["directory_tokens"]),
    )


def _identity(data: object) -> Identity:
    identity = _object(data)
    roles = identity["roles"]
    return Identity(
        _text_or_none(identity["user"]),
        None if roles is None else frozenset(_texts(roles)),
        _text_or_none(identity["channel"]),
        _text_or_none(identity["group"]),
    )


def _error(data: object) -> ErrorInfo | None:
    if data is None:
        return None
    error = _object(data)
    return ErrorInfo(_text(error["code"]), _text(error["message"]))


def _usage(data: object) -> Usage:
    usage = _object(data)
    return Usage(
        int(usage["input_tokens"]),
        int(usage["output_tokens"]),
        int(usage["cached_tokens"]),
        int(usage["reasoning_tokens"]),
        int(usage["model_calls"]),
        bool(usage["estimated"]),
    )


def _object(data: object) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise TypeError("there is no object where one belongs")
    return data


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"there is {value!r:.40} where a text belongs")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"there is {value!r:.40} where a list belongs")
    return tuple(map(_text, value))
