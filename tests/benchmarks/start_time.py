"""What it costs to start the daemon with many handlers, beside a process that only reads them.

Medians in seconds. Processor time is that of the whole process until it serves. The first time
nothing of the package is compiled and the state folder is empty; its libraries are compiled, as pip
leaves them. The bare process imports the same libraries, reads the same files and parses their JSON.
"""

import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from catalogue_files import folder_or_exit
from daemon import bare_environment, daemon
from handler_tree import imported_tools, write_catalogue
from report import options, show

ROOT = Path(__file__).parents[2]
CONFIG = '[runtime]\nstate_dir = "state"\n[handlers]\npaths = ["tools"]\n'
BARE = """
import sys
from pathlib import Path
import json, socket, ssl, asyncio, logging, tomllib
import click, dotenv, httptools, httpx2, jsonschema_rs, numpy, pydantic, pydantic_settings
import Stemmer, starlette.applications, uvicorn

for config in Path(sys.argv[1]).rglob("config.json"):
    json.loads(config.read_bytes())
    config.with_name("handler.py").read_bytes()
"""
Costs = tuple[float, float]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--tools", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    catalogues = folder_or_exit()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        copy_package(place)
        write_catalogue(place / "tools", catalogues, given.tools)
        (place / "config.toml").write_text(CONFIG, "utf-8")
        check(place, given.tools)
        kinds = {
            "the first time": lambda: first_time(place),
            "again": lambda: start(place),
            "bare process": lambda: bare(place),
        }
        rounds = [{name: run() for name, run in kinds.items()} for _ in range(given.runs)]
    medians = {name: median([each[name] for each in rounds]) for name in kinds}
    floor = medians["bare process"][0]
    reach = {"the first time": "2", "again": "1", "bare process": "-"}
    rows = [
        [given.tools, name, cpu, f"{cpu / floor:.1f}x", wall, reach[name]]
        for name, (cpu, wall) in medians.items()
    ]
    head = ["tools", "start", "processor time, s", "of the bare one", "passed, s", "at most, s"]
    show(given, head, rows, f"Medians of {given.runs} runs; none was imported.")


def copy_package(place: Path) -> None:
    """The package as a wheel has it, without compiled files."""
    skipped = shutil.ignore_patterns("__pycache__")
    package = place / "lib" / "session_runtime"
    shutil.copytree(ROOT / "runtime" / "session_runtime", package, ignore=skipped)
    shutil.copytree(ROOT / "handlers", package / "bundled", ignore=skipped)


def check(place: Path, tools: int) -> None:
    """What is measured is what was meant: every tool is there, and no code of one was imported."""
    with daemon(place / "config.toml", environment(place)) as running:
        with urllib.request.urlopen(f"{running.url}/v1/status") as answer:
            status = json.load(answer)
    if status["tools"] < tools or status["quarantined"]:
        sys.exit(f"of {tools} tools {status['tools']} are there: {status['quarantined']}")
    if count := imported_tools(place / "tools"):
        sys.exit(f"{count} tools were imported at the start")


def first_time(place: Path) -> Costs:
    shutil.rmtree(place / "state")
    for folder in list((place / "lib").rglob("__pycache__")):
        shutil.rmtree(folder)
    return start(place)


def start(place: Path) -> Costs:
    def run() -> float:
        with daemon(place / "config.toml", environment(place)):
            return time.perf_counter()

    return measured(run)


def bare(place: Path) -> Costs:
    def run() -> float:
        command = [sys.executable, "-c", BARE, str(place / "tools")]
        subprocess.run(command, check=True, env=bare_environment())
        return time.perf_counter()

    return measured(run)


def measured(run: Callable[[], float]) -> Costs:
    """Processor time of the child process that ``run`` ends, and the time until what it returns."""
    before, started = used_by_children(), time.perf_counter()
    ready = run()
    return used_by_children() - before, ready - started


def used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def environment(place: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(place / "lib")}


def median(costs: list[Costs]) -> Costs:
    cpu, wall = zip(*costs, strict=True)
    return statistics.median(cpu), statistics.median(wall)


if __name__ == "__main__":
    main()
