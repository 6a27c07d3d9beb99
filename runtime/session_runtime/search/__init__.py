"""Tool search: finds tools by name or keywords among those an ask may see, and loads them step by step.

It works on names and texts only and runs nothing (TS-12). Usable without a daemon: ``index_tools``,
``rank``, ``open_session`` (INT-6).
"""

from session_runtime.search.fields import FieldWeights
from session_runtime.search.governor import SearchGovernor, SearchReply
from session_runtime.search.index import SearchIndex, build_index, index_tools
from session_runtime.search.loader import PROMPT_RULE, tool_search_spec
from session_runtime.search.session import (
    EMPTY_QUERY,
    EMPTY_QUERY_CODE,
    SearchResult,
    ToolSearchSession,
    open_session,
    resolve_names,
)
from session_runtime.search.view import SearchView

__all__ = [
    "EMPTY_QUERY",
    "EMPTY_QUERY_CODE",
    "PROMPT_RULE",
    "FieldWeights",
    "SearchGovernor",
    "SearchIndex",
    "SearchReply",
    "SearchResult",
    "SearchView",
    "ToolSearchSession",
    "build_index",
    "index_tools",
    "open_session",
    "resolve_names",
    "tool_search_spec",
]
