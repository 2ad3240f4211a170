"""A demo in a process of its own, and ways to wait for what it does."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 60
LOOK_SECONDS = 0.1


class Demo:
    """A demo that was started, and has said where its console is."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        self.address = self._address()

    def _address(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.search(r"http://\S+", line)
            if found:
                return found[0]
        raise AssertionError("the demo ended before it started")

    def get(self, path: str) -> bytes:
        """What the console answers; an error status raises."""
        with urllib.request.urlopen(self.address + path) as answer:  # noqa: S310
            body: bytes = answer.read()
            return body

    def status(self, path: str) -> int:
        """How the console answers."""
        try:
            self.get(path)
        except urllib.error.HTTPError as error:
            return error.code
        return 200

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


@contextmanager
def running_demo(
    folder: Path, *arguments: object, python: str | Path = sys.executable
) -> Iterator[Demo]:
    """A demo on a free port, in ``folder``."""
    command = [str(python), "-m", "latchwork", "demo", "--port", "0", *map(str, arguments)]
    demo = Demo(command, folder)
    try:
        yield demo
    finally:
        demo.end()


def eventually(look: Callable[[], T | None], patience_seconds: float = PATIENCE_SECONDS) -> T:
    """Look again and again until there is something to see, and return it."""
    deadline = time.monotonic() + patience_seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(LOOK_SECONDS)
    return seen


def runs(pid: int) -> bool:
    """Whether a process of this id runs; one that has ended and was not asked about does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return bool(state.stdout.strip()) and not state.stdout.startswith("Z")
