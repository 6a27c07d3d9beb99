"""Traces: one record per ask, redacted, written as JSON lines."""
