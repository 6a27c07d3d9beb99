"""Reads pages of the public internet, and nothing that is not public (SEC-2)."""
