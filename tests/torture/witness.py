"""The outside witness: a file to which handlers append, so that nobody trusts the tables alone."""

import os
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from latchwork import JobContext
from latchwork.views import TransitionView


class Line(NamedTuple):
    """What one handler saw: an attempt that began, or one that was about to return.

    An observer's line says ``told``, with the ordinal of the log row as its ``attempt``.
    """

    what: str
    job_id: UUID
    attempt: int
    pid: int
    at: datetime


class Witness:
    """One process's end of the file; a line is written by one call, so lines never mix."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def begin(self, context: JobContext) -> None:
        self._write("begin", context.job_id, context.attempt)

    def end(self, context: JobContext) -> None:
        self._write("end", context.job_id, context.attempt)

    def told(self, transition: TransitionView) -> None:
        self._write("told", transition.job_id, transition.ordinal)

    def _write(self, what: str, job_id: UUID, number: int) -> None:
        line = f"{what} {job_id} {number} {os.getpid()} {time.time():.6f}\n"
        os.write(self._file, line.encode())


class Testimony:
    """All that the handlers have written so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def lines(self) -> list[Line]:
        """Every line, oldest first."""
        parts = (line.split() for line in self._path.read_text().splitlines())
        return [
            Line(what, UUID(job), int(attempt), int(pid), datetime.fromtimestamp(float(at), UTC))
            for what, job, attempt, pid, at in parts
        ]

    def begun_by(self) -> Counter[int]:
        """How many attempts each process has begun."""
        return Counter(line.pid for line in self.lines() if line.what == "begin")
