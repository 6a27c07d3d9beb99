"""Prints the figures of a benchmark as one Markdown table, or as JSON, with the machine they are from."""

import argparse
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

Cell = str | int | float


def options(description: str | None) -> argparse.ArgumentParser:
    """The command line that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.set_defaults(load=os.getloadavg()[0])
    return parser


def show(
    given: argparse.Namespace, head: Sequence[str], rows: Sequence[Sequence[Cell]], note: str = ""
) -> None:
    """Print the table in the form that the options ask for; ``note`` is a sentence below it."""
    told_machine = machine(given.load)
    if given.json:
        figures = [dict(zip(head, row, strict=True)) for row in rows]
        told = {"machine": told_machine, "figures": figures, "note": note}
        print(json.dumps(told, ensure_ascii=False, indent=1))
        return
    print(markdown_table(head, rows))
    print("\n" + ", ".join(f"{name} {value}" for name, value in told_machine.items()) + ".")
    if note:
        print(f"\n{note}")


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table in Markdown; numbers have three digits."""
    lines = [head, ["---"] * len(head), *([_shown(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine(load: float) -> dict[str, str]:
    """What the figures depend on; a load before the start makes them worse."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "Python": platform.python_version(),
        "load before": f"{load:.2f}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _shown(cell: Cell) -> str:
    match cell:
        case float():
            return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
        case int():
            return f"{cell:,}"
        case _:
            return cell
