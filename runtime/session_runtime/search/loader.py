"""The virtual ``tool_search`` tool as the model sees it, and the rule that goes with it (TS-5, TS-12)."""

import hashlib
import json

from session_runtime.registry.names import TOOL_SEARCH
from session_runtime.registry.spec import Annotations, ToolSpec

PROMPT_RULE = """\
Only some of your tools are loaded. The names of the others stand in <available_deferred_tools>; a \
line such as group.* (12 tools) stands for tools whose names are not listed.
- To use one of them, first call tool_search. Prefer the query select: with exact names from the \
list, several separated by commas; otherwise give a few short keywords.
- tool_search only loads tools; it does nothing else. A loaded tool can be called from your next turn \
on, not in the same turn as the search.
- A loaded tool has done nothing yet: call it in the next turn, and do not say that a task is done \
because its tool was loaded.
- The tools you may call are those of the newest turn, under the names they have there."""


def tool_search_spec(max_results: int) -> ToolSpec:
    """The tool itself; it differs only by the number of tools that a search may load."""
    description = (
        "Loads tools by name or keywords, so that they can be called from the next turn on. It does "
        "not run them: after a tool is loaded, call it. Prefer the query 'select:' with exact names "
        "from <available_deferred_tools>, for example select:first.tool,second.tool; otherwise use "
        "a few short keywords, and +word for a word that must occur. At most "
        f"{max_results} tools are loaded at a time. Names under already_loaded can be called now; do "
        "not search for them again."
    )
    parameters = {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "select: and names separated by commas, or keywords",
            },
            "max_results": {
                "type": "integer",
                "description": f"Load fewer tools than {max_results}",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    content = json.dumps([description, parameters], sort_keys=True)
    return ToolSpec(
        name=TOOL_SEARCH,
        description=description,
        parameters=parameters,
        origin="virtual",
        source_id="tool_search",
        native_name=TOOL_SEARCH,
        digest=hashlib.blake2b(content.encode(), digest_size=16).hexdigest(),
        annotations=Annotations(read_only=True, idempotent=True),
    )
