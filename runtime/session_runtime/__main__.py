"""Lets ``python -m session_runtime`` stand in for the ``session-runtime`` command."""

import sys

from session_runtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
