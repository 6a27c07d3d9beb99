"""Rules of the loop behind ask() (ASK)."""

from tests.spec.requirement import Requirement, met

ASK: tuple[Requirement, ...] = (
    met(
        "ASK-1",
        "`ask(request, emit)` is the one way in for every transport. Its result tells how the ask "
        "ended - answered, ended by `end`, at a limit, waiting for consent, cancelled or failed - "
        "with the text, the messages sent, the new part of the transcript, usage, steps, loaded "
        "tools, generation and the ask's id, which is the trace's id too. Only cancellation is "
        "raised, and the result is also the last event, once. `emit` is synchronous and does not "
        "block; a reader that is too slow loses pieces of text first, is told so, and delays "
        "nobody.",
    ),
    met(
        "ASK-2a",
        "A request has a text or messages, which may hold images, and may have history, "
        "instructions, an identity (user, roles, channel, group), a model profile, a deadline, "
        "metadata and the wish for silence. The system prompt is configured as text or as a file "
        "and belongs to the generation. A history with results that nobody asked for, calls "
        "without a result, calls of tools that are gone or empty content is mended until every "
        "wire format takes it.",
    ),
    met("ASK-2b", "The file of the system prompt is watched like the configuration."),
    met(
        "ASK-2c",
        "A request can carry the confirmations that an earlier ask waited for, and say which calls "
        "were declined. What was confirmed is carried out as it was asked about before the model is "
        "asked, and the model gets call and result; of what was declined it is told so.",
    ),
    met(
        "ASK-3a",
        "Chat Completions, streaming or not, gets one growing list of ordinary function tools and "
        "no search feature of a provider. Fields of a reply that we do not know go back with it "
        "in the next request.",
    ),
    met(
        "ASK-3b",
        "Responses works on the same list. Turns are chained by id and repeat the grown list; a "
        "gateway that refuses the chain gets the whole conversation once, without state.",
    ),
    met(
        "ASK-3c",
        "Anthropic Messages works on the same list, streaming or not, and keeps what it does not "
        "know.",
    ),
    met(
        "ASK-4",
        "Before the next turn every call id has one result and no second one, in the order of the "
        "calls. The calls of a turn run side by side. What goes wrong becomes a result: what it "
        "was, whether another attempt can help, and what can be called now.",
    ),
    met(
        "ASK-5",
        "Arguments are strict JSON. Mended is only what leaves no choice: a code fence, a comma "
        "too many, an object that was encoded twice where the schema wants an object, nothing at "
        "all where the schema is content with `{}`. Anything else is answered with the problem, "
        "and no tool ever runs with made-up arguments.",
    ),
    met(
        "ASK-6",
        "A call written as text, in one of the known envelopes and also after a closing think "
        "tag, is recovered if the text is that envelope and nothing more; prose and data that "
        "merely look alike stay text. It may only name a tool of this turn, and the envelope does "
        "not come back in the history.",
    ),
    met(
        "ASK-7",
        "`end` ends the ask when it is the only call; among others it is refused and they run. "
        "`send_message` hands a message to the caller while the ask goes on. With `require_end`, "
        "prose without a call is answered by a reminder, at most `missing_tool_call_retries` "
        "times, and then delivered. An empty answer is asked for again on an unchanged history, "
        "and in the end fails with a type of its own.",
    ),
    met(
        "ASK-8a",
        "An ask is limited in steps, tool calls, tokens and time. The same call made again and "
        "again draws a warning and then a refusal, and a refusal uses up no other allowance.",
    ),
    met(
        "ASK-8b",
        "A result that is too long is given as a summary with its key fields and a reference, "
        "together within the limit; `results.read`, loaded for the next turn, reads the whole in "
        "parts for as long as the ask runs. Where it cannot be called, no reference is given.",
    ),
    met(
        "ASK-9a",
        "A model call that failed for a passing reason (too many requests, server error, network) "
        "is repeated with the same messages after a growing, jittered wait that honours "
        "Retry-After. Once a tool of the turn has begun, that turn is never asked for again. The "
        "decision is taken in one place.",
    ),
    met(
        "ASK-9b",
        "A profile may name another one that takes over when it does not answer. It does so for the "
        "rest of the ask, which goes on with the same conversation and the same tools; no tool runs "
        "again. A profile that cannot go on with the ask is passed over.",
    ),
    met(
        "ASK-10",
        "Notices tell the chat what is called: nothing, sub-agents alone (`agent`), sub-agents "
        "and tools (`tools`), the same without chatter (`clean`, quiet for `send_message`, `end` "
        "and silent asks), or everything (`all`). The loader is announced like any tool. Loading "
        "a tool and calling it later are two notices; several calls of one name in a turn are one "
        "notice with their number.",
    ),
    met(
        "ASK-11",
        "A folder below `handlers/agents/` is a sub-agent with a description, a prompt, settings "
        "(model, limits, shared tools, who may call it, remote servers) and tools of its own. For "
        "the main model it is a tool, named without a prefix. It sees all the tools on its list, "
        "which is checked when listing and when calling. It cannot call itself or close a circle, "
        "its depth is limited, and it shares the budgets of the ask: turns, calls, tokens and time.",
    ),
    met(
        "ASK-12a",
        "Canonical names become names that providers accept (letters, digits, `_`, `-`, 64 at "
        "most; a dot becomes the profile's separator) and back again, without collisions and the "
        "same way for a whole generation; `tool_search` is reserved. Characters that break names "
        "are replaced at registration, while the source keeps its own spelling.",
    ),
    met(
        "ASK-12b",
        "If a profile takes fewer tools than would be sent, the ask fails with a type of its own "
        "and points to tool search. With tool search, no more are loaded than the profile takes.",
    ),
    met(
        "ASK-13",
        "Asks that name the same conversation wait for one another, replace one another or run "
        "side by side, as configured; waiting is the default. Users behind one principal share "
        "its capacity fairly.",
    ),
)
