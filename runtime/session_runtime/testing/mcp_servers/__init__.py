"""Servers of the Model Context Protocol for tests: well-behaved ones, and ones that break each rule.

``raw`` (a process) and ``raw_http`` (a thread or process that listens) play a ``Script`` without the SDK and
start at once; ``official`` holds real ones made with the SDK. None of them is for production.
"""
