"""How well tool search finds the tools of a catalogue: cases, what they come to, and figures over them.

Nothing runs and no model is asked: what is measured is the ranking that an ask would get.
"""

from session_runtime.evaluation.cases import Case, read_cases
from session_runtime.evaluation.catalogue import Catalogue, read_catalogue
from session_runtime.evaluation.compare import Change, compare
from session_runtime.evaluation.figures import Figures, by_kind, figures
from session_runtime.evaluation.outcome import DEPTH, Outcome
from session_runtime.evaluation.subject import Subject, evaluate

__all__ = [
    "DEPTH",
    "Case",
    "Catalogue",
    "Change",
    "Figures",
    "Outcome",
    "Subject",
    "by_kind",
    "compare",
    "evaluate",
    "figures",
    "read_cases",
    "read_catalogue",
]
