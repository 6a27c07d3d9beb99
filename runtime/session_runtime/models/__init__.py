"""Adapters from our messages and tools to what a model provider speaks, one module per wire format."""
