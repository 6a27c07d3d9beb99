"""The sections about tools: [skills], [search], [access], [features] and [notices].

Which tools there are is configured in ``handlers``.
"""

import re
import unicodedata
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from session_runtime.config.section import Count, Seconds, Section, Table, Whole, key, table

NoticeMode = Literal["none", "agent", "tools", "clean", "all"]
Destructive = Literal["confirm", "deny", "allow"]

Percent = Annotated[int, Field(ge=0, le=100)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]

_WORD = re.compile(r"[^\W_]{1,64}|[a-z]{1,32}_[a-z]{1,32}")
_UNSPACED = re.compile(r"[\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_LONGEST_UNSPACED = 12


def _is_group(text: str) -> str:
    """Words as the index holds them; raises ValueError for what no tool could be found by."""
    words = unicodedata.normalize("NFKC", text).casefold().split()
    if not 2 <= len(words) <= 20:
        raise ValueError("needs 2 to 20 words, with blanks between them")
    if len(set(words)) < len(words):
        again = next(word for word in words if words.count(word) > 1)
        raise ValueError(f"holds {again[:70]!r} twice")
    for word in words:
        _check_word(word)
    return " ".join(words)


def _check_word(word: str) -> None:
    if not _WORD.fullmatch(word):
        raise ValueError(
            f"holds {word[:70]!r}, which is neither one word of letters and digits (64 at most)"
            " nor two of the letters a to z with _ between them"
        )
    unspaced = "".join(_UNSPACED.findall(word))
    if unspaced and unspaced != word:
        raise ValueError(f"holds {word!r}, which mixes scripts: a query has these as two words")
    if len(unspaced) > _LONGEST_UNSPACED:
        raise ValueError(
            f"holds {word!r}: words of Chinese, Japanese or Korean have"
            f" {_LONGEST_UNSPACED} characters at most"
        )


SynonymGroup = Annotated[str, AfterValidator(_is_group)]

_ON = frozenset({"1", "true", "yes", "on", "y", "t"})
_OFF = frozenset({"0", "false", "no", "off", "n", "f"})


class SkillsSettings(Section):
    """Tool search: which tools a model sees at once, and which it has to look up."""

    tool_search_enabled: bool = key(
        False,
        "Whether the model starts with few tools and looks up the others.",
        env="TOOL_SEARCH_ENABLED",
        network=True,
    )
    tool_search_always_loaded: tuple[str, ...] = key(
        ("send_message", "end"),
        "Tools the model has from its first turn on.",
        env="TOOL_SEARCH_ALWAYS_LOADED",
        network=True,
    )
    tool_search_max_results: Count = key(
        5, "The most tools that one search loads.", env="TOOL_SEARCH_MAX_RESULTS", network=True
    )
    prefetch_tools: tuple[str, ...] = key(
        ("get_current_time",),
        "Tools that are called before the first turn; the model gets their results.",
        env="PREFETCH_TOOLS",
        network=True,
    )
    prefetch_tools_hide: bool = key(
        True,
        "Whether a tool whose prefetch succeeded is hidden from the model.",
        env="PREFETCH_TOOLS_HIDE",
        network=True,
    )
    tool_search_directory_max_tokens: Whole = key(
        8000,
        "The longest list of tool names the model is shown, in tokens; above it, large groups are"
        " named as a whole.",
        network=True,
    )
    tool_search_threshold_percent: Percent = key(
        0,
        "Tool search is left off while the tools it would hold back need less than this share of"
        " the model's context window; 0 means it never is.",
        network=True,
    )
    tool_search_explain: bool = key(
        False,
        "Whether a search adds a hint: the nearest names where it found nothing, and what can be called now.",
        network=True,
    )
    tool_search_autoload: bool = key(
        False,
        "Whether a call of a tool that is not loaded yet loads it for the next turn. The call itself is"
        " refused either way.",
        network=True,
    )
    tool_search_max_calls: Count = key(
        8,
        "The most searches of an ask; after that the model must work with what it has.",
        network=True,
    )
    tool_search_sticky_turns: Whole = key(
        0,
        "Tools that the last so many turns of the history called are loaded from the start, if they are still"
        " permitted; 0 loads none. Where `max_tools` leaves few places the latest go first, and some stay"
        " free for searches.",
        network=True,
    )
    prefetch_timeout_s: Seconds = key(
        5.0, "The longest each prefetch may take, in seconds.", network=True
    )


class SearchSettings(Section):
    """How much a match in each part of a tool counts (0 leaves it out), and which words mean the same."""

    name: Weight = key(3.5, "The tool's own name.", network=True)
    namespace: Weight = key(2.0, "The group in front of the name.", network=True)
    aliases: Weight = key(3.5, "Other names of the tool.", network=True)
    hints: Weight = key(2.0, "The author's search hints.", network=True)
    description: Weight = key(1.2, "The description.", network=True)
    parameters: Weight = key(0.9, "Names of parameters.", network=True)
    parameter_descriptions: Weight = key(0.6, "Descriptions of parameters.", network=True)
    enums: Weight = key(0.8, "Values that a parameter allows.", network=True)
    synonym_share: Share = key(
        0.35, "What a synonym of a word brings instead of it, as a share.", network=True
    )
    translation_share: Share = key(
        0.65, "What the translation of a word brings besides it, as a share.", network=True
    )
    saturation: Annotated[float, Field(ge=0.01, le=100)] = key(
        1.9,
        "How slowly further evidence for the same word stops to matter: a small number means that it"
        " matters little where else a word stands.",
        network=True,
    )
    rarity: Annotated[float, Field(ge=0, le=10)] = key(
        0.75,
        "How much more a rare word counts than a common one; 0 means not at all.",
        network=True,
    )
    synonyms: Annotated[tuple[SynonymGroup, ...], Field(max_length=1_000)] = key(
        (),
        'Groups of words that mean the same, beside those that come along: `["ticket issue 工单"]`;'
        " two words that stand for one have `_` between them: `virtual_machine`.",
        network=True,
    )


class AccessRule(Section):
    """Whom a rule is about (an empty list means anybody), and what it says."""

    roles: tuple[str, ...] = key((), "Roles, one of which the caller must have.")
    users: tuple[str, ...] = key((), "Users the rule is about.")
    channels: tuple[str, ...] = key((), "Channels the rule is about.")
    allow: tuple[str, ...] = key((), "Patterns of tool names that are allowed.")
    deny: tuple[str, ...] = key((), "Patterns of tool names that are forbidden; deny wins.")

    @model_validator(mode="after")
    def _says_something(self) -> "AccessRule":
        if not self.allow and not self.deny:
            raise ValueError("the rule needs allow or deny")
        return self


class AccessSettings(Section):
    """Who may see and call which tools."""

    default: Literal["allow", "deny"] = key("allow", "What holds for a tool that no rule names.")
    destructive: Destructive = key(
        "confirm",
        "What holds for tools that change things for good: confirm (there, but a call runs only when a"
        " person agrees to it), deny (not there) or allow (like any other tool).",
    )
    confirm_ttl_s: Seconds = key(
        600.0, "How long a person can agree to a call that waits for it, in seconds."
    )
    rules: Table[AccessRule] = table("Rules, each under a name of your choice.")


class NoticesSettings(Section):
    """Lines that tell the chat which tool the model calls."""

    mode: NoticeMode = key(
        "none",
        "Which calls are told: none; agent (only calls of sub-agents); tools (calls of tools and"
        " sub-agents); clean (like tools, without send_message, end and prefetches, and never in a"
        " silent ask); all.",
    )


class EasterEggSettings(Section):
    """The old spelling of [notices]; give one of the two."""

    agent_call_message_enabled: bool | str = key(
        "none", "The same as notices.mode; true means agent, false means none."
    )


def notice_mode(old: object) -> object:
    """Put ``easter_egg.agent_call_message_enabled`` in the words of ``notices.mode`` (CFG-5).

    What is neither a mode nor true-ish nor false-ish is returned as it came, to be refused.
    """
    word = str(old).strip().casefold() if isinstance(old, bool | str) else ""
    if word in _ON:
        return "agent"
    if word in _OFF:
        return "none"
    return word or old
