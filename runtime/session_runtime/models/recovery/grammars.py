"""By the mark that an envelope begins with, the grammar that reads it."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from session_runtime.models.recovery import literals, tags, tokens
from session_runtime.models.recovery.written import Cursor, WrittenCall

Grammar = Callable[[Cursor], list[WrittenCall]]

_NAMESPACES: Final = ("", "antml:", "｜DSML｜")
_AROUND_INVOKES: Final = (
    ("function_calls", ""),
    ("antml:function_calls", "antml:"),
    ("minimax:tool_call", ""),
    ("｜DSML｜function_calls", "｜DSML｜"),
    ("｜DSML｜tool_calls", "｜DSML｜"),
)
_AROUND_JSON: Final = (
    ("<TOOL_CALL>", "</TOOL_CALL>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<function_call>", "</function_call>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("<|action_start|><|plugin|>", "<|action_end|>"),
    ("<|python_tag|>", ""),
)
_GEMMAS: Final = (
    ("<start_function_call>", "<end_function_call>", "<escape>"),
    ("<|tool_call>", "<tool_call|>", '<|"|>'),
)
_SEED: Final = "<seed:tool_call>"


def _grammars() -> Mapping[str, Grammar]:
    grammars: dict[str, Grammar] = {
        tags.TOOL_CALL: tags.read_tool_calls,
        tags.FUNCTION: tags.read_functions,
        tokens.MISTRAL: tokens.read_mistral,
        tokens.DEEPSEEK: tokens.read_deepseek,
        tokens.KIMI: tokens.read_kimi,
        tokens.HARMONY: tokens.read_harmony,
        tokens.HARMONY_START: tokens.read_harmony,
    }
    for opening, closing, quote in _GEMMAS:
        grammars[opening] = partial(
            literals.read_gemma, opening=opening, closing=closing, quote=quote
        )
    for opening, closing in _AROUND_JSON:
        grammars[opening] = partial(tags.read_marked_json, opening=opening, closing=closing)
    grammars[_SEED] = partial(
        tags.read_wrapped_functions, opening=_SEED, closing="</seed:tool_call>"
    )
    for namespace in _NAMESPACES:
        grammars[f'<{namespace}invoke name="'] = partial(tags.read_invokes, namespace=namespace)
    for wrapper, namespace in _AROUND_INVOKES:
        grammar = partial(tags.read_wrapped_invokes, wrapper=wrapper, namespace=namespace)
        grammars[f"<{wrapper}>"] = grammar
    return MappingProxyType(grammars)


GRAMMARS: Final = _grammars()
"""No mark begins another, so that at most one fits a text."""
