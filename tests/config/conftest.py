"""A folder with a configuration file to read from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from session_runtime.config.load import load
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError
from session_runtime.types import NOTHING


@dataclass(frozen=True)
class Reader:
    """Reads configurations that are written into ``folder``; without a text there is no file."""

    folder: Path

    def __call__(
        self,
        text: str | None = None,
        *,
        env: Mapping[str, str] = NOTHING,
        explicit: Mapping[str, object] = NOTHING,
        dotenv: str | None = None,
    ) -> ConfigSnapshot:
        path = self.folder / "config.toml"
        if text is not None:
            path.write_text(text, "utf-8")
        named = self.folder / ".env"
        if dotenv is not None:
            named.write_text(dotenv, "utf-8")
        return load(
            path,
            named=text is not None,
            env=env,
            explicit=explicit,
            dotenv=None if dotenv is None else named,
        )

    def problems(
        self,
        text: str | None = None,
        *,
        env: Mapping[str, str] = NOTHING,
        explicit: Mapping[str, object] = NOTHING,
        dotenv: str | None = None,
    ) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            self(text, env=env, explicit=explicit, dotenv=dotenv)
        return [str(problem) for problem in caught.value.problems]

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, "utf-8")
        return path


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path)
