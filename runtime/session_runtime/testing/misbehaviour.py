"""What models and their servers do wrong, by name, to be played by ``Upstream`` (ASK-5, ASK-6).

``misbehave("text_hermes", reply_calls(("math__evaluate", {"expression": "6*7"})))`` is the reply of a model
that writes this call as text. ``MISBEHAVIOURS`` says of each name what is wrong and on which wires.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Final

from session_runtime.spelling import hint
from session_runtime.testing import chat_faults, message_faults, response_faults
from session_runtime.testing.replies import (
    Call,
    ChatReply,
    Edit,
    Pace,
    Reply,
    reply_bytes,
    reply_error,
)
from session_runtime.testing.written_calls import IN_SCHEMA, WRITINGS, Write

_EDITS: Final[Mapping[str, Mapping[str, Edit]]] = MappingProxyType(
    {
        "chat": chat_faults.EDITS,
        "responses": response_faults.EDITS,
        "anthropic": message_faults.EDITS,
    }
)
WIRES: Final = tuple(_EDITS)
MODES: Final = ("native", "text", "json_schema")


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """``what`` is wrong, ``wires`` where it can be, ``change`` makes a wrong reply of a right one.

    ``modes`` are the ways of calling tools in which it is a call at all.
    """

    what: str
    change: Callable[[ChatReply], Reply]
    wires: tuple[str, ...] = WIRES
    modes: tuple[str, ...] = MODES


def misbehave(name: str, reply: ChatReply) -> Reply:
    """The reply as a model or server with this misbehaviour would give it; KeyError for an unknown name."""
    found = MISBEHAVIOURS.get(name)
    if found is None:
        raise KeyError(f"no misbehaviour {name!r}; {hint(name, MISBEHAVIOURS)}")
    return found.change(reply)


def _written(write: Write, reply: ChatReply) -> Reply:
    return replace(reply, text=write(reply.calls), calls=(), finish_reason="stop")


def _cut_writing(name: str, reply: ChatReply) -> Reply:
    text = WRITINGS[name](reply.calls)
    return replace(reply, text=text[:-20], calls=(), finish_reason="length")


def _arguments(change: Callable[[str], str], reply: ChatReply) -> Reply:
    calls = tuple(replace(call, arguments=change(call.arguments)) for call in reply.calls)
    return replace(reply, calls=calls)


def _instead(arguments: str, reply: ChatReply) -> Reply:
    return _arguments(lambda right: arguments, reply)


def _fenced(arguments: str) -> str:
    return f"```json\n{arguments}\n```"


def _with_comma(arguments: str) -> str:
    return f"{arguments[:-1]},}}"


def _cut(arguments: str) -> str:
    return arguments[: len(arguments) - 2]


def _all_calls(change: Callable[[Call], Call], reply: ChatReply) -> Reply:
    return replace(reply, calls=tuple(map(change, reply.calls)))


def _same_id(call: Call) -> Call:
    return replace(call, id="call_same")


def _unknown_name(call: Call) -> Call:
    return replace(call, name=f"{call.name}_of_old")


def _no_name(call: Call) -> Call:
    return replace(call, name="")


def _says(text: str, reason: str, reply: ChatReply) -> Reply:
    return replace(reply, text=text, calls=(), finish_reason=reason)


def _stops(reason: str, reply: ChatReply) -> Reply:
    return replace(reply, finish_reason=reason)


def _thinks(text: str, reply: ChatReply) -> Reply:
    return replace(reply, text=f"{text}{reply.text}")


def _thinks_apart(field: str, reply: ChatReply) -> Reply:
    return replace(reply, extra={**reply.extra, field: "I should call a tool."})


def _cut_stream(reply: ChatReply) -> Reply:
    return replace(reply, pace=Pace(cut_after=1))


def _edit(name: str, reply: ChatReply) -> Reply:
    return replace(
        reply, edits={wire: known[name] for wire, known in _EDITS.items() if name in known}
    )


def _edited(name: str, what: str) -> tuple[str, Misbehaviour]:
    wires = tuple(wire for wire in WIRES if name in _EDITS[wire])
    return name, Misbehaviour(what, partial(_edit, name), wires)


def _raw(reply: Reply) -> Callable[[ChatReply], Reply]:
    return lambda right: reply


_THINKING: Final = "<think>\nI should call a tool.\n</think>\n\n"
_DEEP: Final = f'{{"q": {"[" * 200}{"]" * 200}}}'

_TEXTS: Final = {
    name: Misbehaviour("calls are written as text", partial(_written, write))
    for name, write in WRITINGS.items()
} | {
    name: Misbehaviour(
        "calls are written in another form than the schema's",
        partial(_written, write),
        modes=("json_schema",),
    )
    for name, write in IN_SCHEMA.items()
}
_MARKS: Final = dict(
    [
        _edited("index_missing", "pieces of calls do not say which call they belong to"),
        _edited("index_shared", "all calls have the index 0"),
        _edited("id_missing", "calls have no id"),
        _edited("marks_missing", "calls have neither id nor index"),
        _edited("arguments_object", "arguments are an object, not its text"),
        _edited("name_late", "the name comes behind the arguments"),
        _edited("name_in_pieces", "the name comes in pieces"),
        _edited("name_repeated", "id and name come again with each piece"),
        _edited("call_repeated", "each call is sent twice"),
        _edited("interleaved", "pieces of several calls come by turns"),
        _edited("empty_deltas", "pieces that say nothing stand between the others"),
        _edited("finish_missing", "nothing says why the model stopped"),
        _edited("end_empty", "the response at the end of the stream has no output"),
        _edited("end_missing", "the stream ends before its last event"),
        _edited("end_of_calls_missing", "nothing says that a call is whole"),
        _edited("arguments_blank_first", "an empty text announces arguments"),
        _edited("arguments_as_parameters", "arguments are called parameters"),
        _edited("arguments_as_args", "arguments have a name that nobody knows"),
        _edited("index_counts", "the index counts pieces"),
        _edited("index_counts_names", "the index counts pieces, each with id and name again"),
        _edited("index_word", "the index is a word"),
        _edited("index_before", "pieces have the index of the block before theirs"),
        _edited("index_behind", "pieces have the index of the block behind theirs"),
        _edited("id_shared_by_turns", "pieces come by turns, and all have the same id"),
        _edited("id_new_in_each_piece", "each piece has another id"),
        _edited("pieces_astray", "no call has the index of the pieces"),
        _edited("end_blank", "what ends a call says that it has no arguments"),
    ]
)
_OTHERS: Final = {
    "text_half": Misbehaviour(
        "a call written as text breaks off", partial(_cut_writing, "text_hermes")
    ),
    **{
        f"{name}_half": Misbehaviour(
            "a call written as JSON breaks off", partial(_cut_writing, name)
        )
        for name in ("text_json", "text_json_array", "text_json_fenced", "text_tool_calls")
    },
    "id_repeated": Misbehaviour("all calls have the same id", partial(_all_calls, _same_id)),
    "name_unknown": Misbehaviour("there is no such tool", partial(_all_calls, _unknown_name)),
    "name_empty": Misbehaviour("calls have no name", partial(_all_calls, _no_name)),
    "arguments_fenced": Misbehaviour("a code fence is around them", partial(_arguments, _fenced)),
    "arguments_comma": Misbehaviour("a comma too many", partial(_arguments, _with_comma)),
    "arguments_twice": Misbehaviour("encoded twice", partial(_arguments, json.dumps)),
    "arguments_empty": Misbehaviour("nothing at all", partial(_instead, "")),
    "arguments_null": Misbehaviour("null for none", partial(_instead, "null")),
    "arguments_cut": Misbehaviour("they break off", partial(_arguments, _cut)),
    "arguments_code": Misbehaviour("no JSON but code", partial(_instead, 'q = """a"""')),
    "arguments_nan": Misbehaviour("a number that is none", partial(_instead, '{"q": NaN}')),
    "arguments_infinite": Misbehaviour("an endless number", partial(_instead, '{"q": 1e999}')),
    "arguments_huge": Misbehaviour(
        "an endless integer", partial(_instead, f'{{"q": {"9" * 5000}}}')
    ),
    "arguments_key_twice": Misbehaviour(
        "a key is given twice", partial(_instead, '{"q": "a", "q": "b"}')
    ),
    "arguments_surrogate": Misbehaviour(
        "half of a character", partial(_instead, '{"q": "\\ud800"}')
    ),
    "arguments_deep": Misbehaviour("nested too deeply", partial(_instead, _DEEP)),
    "arguments_array": Misbehaviour("an array", partial(_instead, '["a"]')),
    "reply_empty": Misbehaviour("neither text nor calls", partial(_says, "", "stop")),
    "reply_blank": Misbehaviour("nothing but blanks", partial(_says, " \n\t", "stop")),
    "finish_calls_without_calls": Misbehaviour(
        "the model stopped for calls, of which there are none", partial(_says, "", "tool_calls")
    ),
    "finish_stop_with_calls": Misbehaviour(
        "the model stopped as if there were no calls",
        partial(_stops, "stop"),
        ("chat", "anthropic"),
    ),
    "finish_length": Misbehaviour(
        "the reply broke off behind its calls", partial(_stops, "length")
    ),
    "thinking_tags": Misbehaviour("thinking stands in the text", partial(_thinks, _THINKING)),
    "thinking_endless": Misbehaviour(
        "thinking is all there is", partial(_says, "<think>\nI should call", "length")
    ),
    "thinking_apart": Misbehaviour(
        "thinking has a field of its own", partial(_thinks_apart, "reasoning_content"), ("chat",)
    ),
    "thinking_apart_too": Misbehaviour(
        "thinking has another field of its own", partial(_thinks_apart, "reasoning"), ("chat",)
    ),
    "cut_stream": Misbehaviour("the connection breaks in the middle of the reply", _cut_stream),
    "no_json": Misbehaviour("what is sent is no JSON", _raw(reply_bytes(b"data: {oops\n\n"))),
    "web_page": Misbehaviour(
        "a web page", _raw(reply_bytes(b"<html>hello</html>", content_type="text/html"))
    ),
    "nothing": Misbehaviour("an empty body", _raw(reply_bytes(b""))),
    "error_inside": Misbehaviour(
        "an error inside of a success",
        _raw(reply_bytes(b'data: {"error": {"message": "out of memory", "code": 500}}\n\n')),
    ),
    "status_429": Misbehaviour("too many requests", _raw(reply_error(429, "slow down"))),
    "status_500": Misbehaviour("a fault of the server", _raw(reply_error(500, "oops"))),
}

MISBEHAVIOURS: Final[Mapping[str, Misbehaviour]] = MappingProxyType(_TEXTS | _MARKS | _OTHERS)
"""By name."""
