import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import session_runtime

PROGRAM = """
import json, sys
from session_runtime.search import index_tools, open_session

tools = [
    {"name": f"s{n % 7}.do_{word}_{n}", "description": f"{word} the same thing for a user {n % 3}"}
    for n, word in enumerate(["send", "fetch", "remove", "list", "天气", "getUser"] * 20)
]
index = index_tools(tools)
session = open_session(index, max_results=7)
queries = ["same thing user", "delete +user", "天气 list", "usr thingg", "do_send_0", "select:s1.do_fetch_1"]
print(json.dumps([[index.rank(q, 9), session.search(q)] for q in queries] + [session.directory]))
"""


def run(seed: str) -> object:
    source_root = Path(str(session_runtime.__file__)).parent.parent
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(source_root)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.requirement("TS-8")
def test_every_process_gives_the_same_answers_and_scores() -> None:
    assert run("1") == run("2")
