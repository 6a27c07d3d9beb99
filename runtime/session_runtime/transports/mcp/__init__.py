"""The MCP door: the tools of this runtime for clients and agents of others, over a pipe and over HTTP."""
