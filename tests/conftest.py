"""What holds for all tests: none asserts a time, and interrupts reach them wherever they are started."""

import logging
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Whatever is started in the background of a script has interrupts ignored, and so have its children.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def nobody_logs_to_the_output_of_a_test_that_is_over() -> Iterator[None]:
    """Commands that run in this process set up logging, and would leave it to the tests that follow."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    for handler in [each for each in root.handlers if each not in before]:
        root.removeHandler(handler)
    root.setLevel(level)
