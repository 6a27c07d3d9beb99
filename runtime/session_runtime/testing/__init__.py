"""Servers that ship for tests: real protocols on the loopback interface instead of mocks."""
