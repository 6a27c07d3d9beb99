"""Folders that the operator opened to tools, and that tools cannot leave (SEC-1)."""
