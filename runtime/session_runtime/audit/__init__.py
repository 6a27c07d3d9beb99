"""The record of tool calls: lines that are chained by keyed hashes, appended, verified (RTE-13)."""
