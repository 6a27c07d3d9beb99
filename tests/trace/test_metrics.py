"""The text format in which a monitoring system reads numbers."""

import pytest

from session_runtime.trace.metrics import Family, Sample, exposition, gauge

pytestmark = pytest.mark.requirement("REL-3")


def test_each_family_says_what_it_is_and_lists_its_samples() -> None:
    reloads = Family(
        "reloads_total",
        "counter",
        "How often.",
        (Sample(2, {"trigger": "watch", "verdict": "applied"}), Sample(0, {"trigger": "http"})),
    )
    assert exposition([gauge("ready", "Whether.", True), reloads]) == (
        "# HELP session_runtime_ready Whether.\n"
        "# TYPE session_runtime_ready gauge\n"
        "session_runtime_ready 1\n"
        "# HELP session_runtime_reloads_total How often.\n"
        "# TYPE session_runtime_reloads_total counter\n"
        'session_runtime_reloads_total{trigger="watch",verdict="applied"} 2\n'
        'session_runtime_reloads_total{trigger="http"} 0\n'
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (0.25, "0.25"),
        (1_796_027_046.4565911, "1796027046.4565911"),
        (2**52 - 1, "4503599627370495"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_keep_their_digits(value: float, written: str) -> None:
    assert exposition([gauge("n", "N.", value)]).splitlines()[-1] == f"session_runtime_n {written}"


def test_what_would_end_a_line_or_a_label_is_escaped() -> None:
    text = exposition([gauge("n", "a\\b\nc", 1, {"v": 'x"\\\ny'})])
    assert text.splitlines() == [
        r"# HELP session_runtime_n a\\b\nc",
        "# TYPE session_runtime_n gauge",
        r'session_runtime_n{v="x\"\\\ny"} 1',
    ]
