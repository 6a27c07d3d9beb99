"""The installed package inside a project that has folders of the same names as our source tree."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import write_handler

ROOT = Path(__file__).resolve().parents[2]
APP = """
import asyncio, json
import handlers, runtime
import session_runtime
from session_runtime import AskRequest, Runtime

async def main():
    async with Runtime.open("bot.toml", env={}) as rt:
        sums = await rt.ask(AskRequest("What is 15% of 2480?"))
        own = await rt.ask(AskRequest("Shout the word 'hello'"))
    print(json.dumps({
        "package": session_runtime.__file__,
        "theirs": [handlers.WHOSE, runtime.WHOSE],
        "sums": sums.text,
        "own": own.text,
    }))

asyncio.run(main())
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A bot with its own ``handlers`` and ``runtime`` packages, one of them full of tools."""
    for name in ("handlers", "runtime"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("WHOSE = 'the bot'\n")
    write_handler(
        tmp_path / "handlers",
        "shout",
        description="Shouts a word.",
        parameters={
            "type": "object",
            "properties": {"word": {"type": "string", "description": "The word to shout"}},
            "required": ["word"],
        },
        code="def execute(args, context):\n    return args['word'].upper() + '!'\n",
    )
    (tmp_path / "bot.toml").write_text('[handlers]\npaths = ["handlers"]\n')
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.mark.requirement("INT-6")
def test_the_wheel_works_in_process_beside_a_bots_own_handlers_and_runtime(project: Path) -> None:
    def python(*arguments: str, cwd: Path) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env={"PYTHONPATH": str(project / "lib"), "PATH": ""},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    python("-m", "hatchling", "build", "-t", "wheel", "-d", str(project / "dist"), cwd=ROOT)
    (wheel,) = (project / "dist").glob("*.whl")
    install = ("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile")
    python(*install, "--target", str(project / "lib"), str(wheel), cwd=project)
    told = json.loads(python("app.py", cwd=project))
    assert told == {
        "package": str(project / "lib" / "session_runtime" / "__init__.py"),
        "theirs": ["the bot", "the bot"],
        "sums": "372",
        "own": "HELLO!",
    }
