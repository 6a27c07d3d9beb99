"""Servers of the Model Context Protocol: their connections, their tools, and calls of these."""
