"""What the ``agent.toml`` of a sub-agent may say (ASK-11); where there is one is decided in ``local``."""

from typing import Final

from session_runtime.config.section import Count, Name, Seconds, Section, key

MAIN: Final = "main"
"""Who calls a sub-agent if no other sub-agent does."""


class AgentSettings(Section):
    """A whole ``agent.toml``; nothing of it has to be said."""

    model: Name | None = key(
        None, "The profile that answers; unset means the one that answers whoever calls."
    )
    tools: tuple[Name, ...] = key(
        (), 'Patterns of shared tools that the agent may use, such as "files.*", agents among them.'
    )
    servers: tuple[Name, ...] = key(
        (), "MCP servers of the configuration all of whose tools the agent may use."
    )
    callers: tuple[Name, ...] = key(
        (MAIN,),
        'Who may call the agent: "main" is the model of an ask, others are patterns of agents.',
    )
    max_steps: Count = key(
        24, "The most model turns of one call; they count for the limit of the ask too."
    )
    max_tool_calls: Count = key(
        48, "The most tool calls of one call; they count for the limit of the ask too."
    )
    timeout_s: Seconds = key(300.0, "The longest that one call may take, in seconds.")


class AgentLimits(Section):
    """The section [agents]: what holds for all sub-agents."""

    max_depth: Count = key(
        2,
        "How deep sub-agents may call each other; 1 means that none may call another.",
        network=True,
    )
