"""What holds for all tests: none asserts a time, and interrupts reach them wherever they are started."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Whatever is started in the background of a script has interrupts ignored, and so have its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
