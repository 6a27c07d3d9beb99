"""Routing and invocation of tools, whatever their source: names, schemas, policy, one call path."""
