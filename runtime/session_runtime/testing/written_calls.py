"""How models write calls as text when their server does not make calls of them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from session_runtime.testing.replies import Call

Write = Callable[[Sequence[Call]], str]


def _plain(call: Call, key: str = "arguments") -> str:
    return f'{{"name": {json.dumps(call.name)}, "{key}": {call.arguments}}}'


def _each(form: Callable[[Call], str], calls: Sequence[Call]) -> str:
    return "\n".join(form(call) for call in calls)


def _hermes(call: Call) -> str:
    return f"<tool_call>\n{_plain(call)}\n</tool_call>"


def _twice(call: Call) -> str:
    return f"<tool_call>\n{_hermes(call)}"


def _unclosed(call: Call) -> str:
    return f"<tool_call>{_plain(call)}"


def _behind_mark(calls: Sequence[Call]) -> str:
    return f"\ufeff{_each(_hermes, calls)}"


def _array(calls: Sequence[Call]) -> str:
    return f"[{', '.join(map(_plain, calls))}]"


def _fenced(calls: Sequence[Call]) -> str:
    return f"```json\n{_array(calls)}\n```"


def _envelope(calls: Sequence[Call]) -> str:
    functions = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]
    return json.dumps({"tool_calls": functions})


def _function(call: Call) -> str:
    return f"<function={call.name}>{call.arguments}</function>"


def _function_parameters(call: Call) -> str:
    lines = (
        f"<parameter={name}>\n{_raw(value)}\n</parameter>"
        for name, value in json.loads(call.arguments).items()
    )
    return "\n".join([f"<tool_call>\n<function={call.name}>", *lines, "</function>\n</tool_call>"])


def _invokes(calls: Sequence[Call]) -> str:
    return "\n".join(["<function_calls>", *map(_invoke, calls), "</function_calls>"])


def _invoke(call: Call) -> str:
    lines = (
        f'<parameter name="{name}">{_raw(value)}</parameter>'
        for name, value in json.loads(call.arguments).items()
    )
    return "\n".join([f'<invoke name="{call.name}">', *lines, "</invoke>"])


def _raw(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _after_thinking(calls: Sequence[Call]) -> str:
    return f"<think>\nI should call a tool.\n</think>\n\n{_each(_hermes, calls)}"


def _after_closing(calls: Sequence[Call]) -> str:
    return f"I should call a tool.\n</think>\n\n{_each(_hermes, calls)}"


def _mistral(calls: Sequence[Call]) -> str:
    return f"[TOOL_CALLS]{_array(calls)}"


def _python(calls: Sequence[Call]) -> str:
    return f"[{', '.join(map(_python_call, calls))}]"


def _python_call(call: Call) -> str:
    values = (f"{name}={value!r}" for name, value in json.loads(call.arguments).items())
    return f"{call.name}({', '.join(values)})"


def _dsml(calls: Sequence[Call]) -> str:
    """Of DeepSeek, which says of each value whether it is a text."""
    text = re.sub(r"<(/?)(?=\w)", r"<\1｜DSML｜", _invokes(calls))
    return re.sub(r'(parameter name="[^"]*")', r'\1 string="true"', text)


def _harmony(call: Call) -> str:
    to = f"<|channel|>commentary to=functions.{call.name} <|constrain|>json"
    return f"{to}<|message|>{call.arguments}<|call|>"


def _after_analysis(calls: Sequence[Call]) -> str:
    thought = "<|channel|>analysis<|message|>I should call a tool.<|end|>"
    return "<|start|>assistant".join([thought, *map(_harmony, calls)])


def _gemma(call: Call) -> str:
    values = json.loads(call.arguments).items()
    pairs = ",".join(f"{name}:<escape>{_raw(value)}<escape>" for name, value in values)
    return f"<start_function_call>call:{call.name}{{{pairs}}}<end_function_call>"


WRITINGS: Final[Mapping[str, Write]] = {
    "text_hermes": partial(_each, _hermes),
    "text_hermes_opened_twice": partial(_each, _twice),
    "text_hermes_unclosed": partial(_each, _unclosed),
    "text_behind_mark": _behind_mark,
    "text_json": partial(_each, _plain),
    "text_json_array": _array,
    "text_json_fenced": _fenced,
    "text_tool_calls": _envelope,
    "text_function": partial(_each, _function),
    "text_function_parameters": partial(_each, _function_parameters),
    "text_invoke": _invokes,
    "text_mistral": _mistral,
    "text_python": _python,
    "text_dsml": _dsml,
    "text_harmony": _after_analysis,
    "text_gemma": partial(_each, _gemma),
    "text_after_thinking": _after_thinking,
    "text_after_closing": _after_closing,
}


def _in_form(form: Callable[[Call], Mapping[str, Any]], calls: Sequence[Call]) -> str:
    return json.dumps({"calls": [{"name": call.name, **form(call)} for call in calls]})


def _answer(calls: Sequence[Call]) -> str:
    return json.dumps({"answer": _each(_hermes, calls)})


IN_SCHEMA: Final[Mapping[str, Write]] = {
    "schema_parameters": partial(_in_form, lambda call: {"parameters": json.loads(call.arguments)}),
    "schema_args": partial(_in_form, lambda call: {"args": json.loads(call.arguments)}),
    "schema_flat": partial(_in_form, lambda call: json.loads(call.arguments)),
    "schema_answer": _answer,
}
"""How models write calls in mode ``json_schema`` when nothing holds them to the schema."""
