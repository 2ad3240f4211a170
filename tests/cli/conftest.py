"""The command line as its users call it: in this process, or in one of its own where it stays."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from latchwork.application import Latchwork
from latchwork.cli import main
from tests.store.builders import Store

SHOP = """
import os
from latchwork import JobContext, Latchwork

app = Latchwork(os.environ["LATCHWORK_DATABASE_URL"])

@app.job("greet")
def greet(context: JobContext, name: str) -> None:
    context.set_output({"hello": name})

@app.job("pid")
def pid(context: JobContext) -> None:
    context.set_output(os.getpid())
"""


@dataclass(frozen=True)
class Done:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output as JSON."""
        return json.loads(self.out)


Call = Callable[..., Done]


@pytest.fixture
def latchwork(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Call ``latchwork`` with these arguments on the test's database."""
    monkeypatch.setenv("LATCHWORK_DATABASE_URL", database_url)

    def call(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["latchwork", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, out, err)

    return call


@pytest.fixture
def store(app: Latchwork) -> Store:
    """Jobs in any state, on the test's database."""
    return Store(app.database)


@pytest.fixture
def shop(tmp_path: Path, database_url: str) -> Path:
    """A folder with an application, ``shop:app``, on the test's database."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP)
    return folder


@pytest.fixture
def start(shop: Path, database_url: str) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start ``latchwork`` in a process of its own, in the shop's folder; it ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def start_process(*arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "latchwork", *arguments],
            cwd=shop,
            env=os.environ | {"LATCHWORK_DATABASE_URL": database_url, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start_process
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=30)
