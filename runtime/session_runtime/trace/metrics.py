"""The text form in which a Prometheus server reads numbers; which numbers there are is decided above."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from session_runtime.types import nothing

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "session_runtime_"


@dataclass(frozen=True, slots=True)
class Sample:
    """One number; its ``labels`` have few values that are known beforehand, never what a caller says.

    ``suffix`` stands behind the name of a family whose samples are of several kinds.
    """

    value: float
    labels: Mapping[str, str]
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one name; the name of a counter ends in ``_total``, ``PREFIX`` is left out."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    meaning: str
    samples: tuple[Sample, ...]


def gauge(name: str, meaning: str, value: float, labels: Mapping[str, str] | None = None) -> Family:
    """A number that goes up and down."""
    return Family(name, "gauge", meaning, (Sample(value, labels or nothing()),))


def exposition(families: Iterable[Family]) -> str:
    """Write all families in the text format 0.0.4."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    name = f"{PREFIX}{family.name}"
    yield f"# HELP {name} {_escaped(family.meaning)}"
    yield f"# TYPE {name} {family.kind}"
    for sample in family.samples:
        labels = ",".join(f'{key}="{_quoted(text)}"' for key, text in sample.labels.items())
        braced = f"{{{labels}}}" if labels else ""
        yield f"{name}{sample.suffix}{braced} {_number(sample.value)}"


def _number(value: float) -> str:
    """Whole numbers without a fraction, so that large ones keep their digits."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
