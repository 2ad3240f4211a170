"""How two operations are held against each other, and what must be true afterwards.

The first operation stops before its n-th statement (or commit); the second runs to its end there,
or until it waits for the first. What both answered and what the tables then hold must be what one
of the two orders of whole operations gives, the audit must be clean, and nobody may have met a
deadlock.
"""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from sqlalchemy import Connection, event, select, text

from latchwork.errors import LatchworkError
from latchwork.settings import Settings
from latchwork.store import schema
from latchwork.store.database import Database
from latchwork.store.dialects import locking
from tests.audit import CHECKS, Tables, read_tables
from tests.boundary.operations import Operation
from tests.boundary.scenes import NAMES, Scene, make_scenes, named, put_rows

PATIENCE_SECONDS = 30.0
POLL_SECONDS = 0.002
WAITING = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
HELD_BY_OTHERS = (("P",), ("Q",), ("P", "Q"))
"""Which roots an operation that skips locked rows may have to pass over."""


class End(NamedTuple):
    """How a run ended: both answers and all that matters in the tables."""

    first: str
    second: str
    rows: tuple[Any, ...]


@dataclass
class Totals:
    """What a walk has seen so far."""

    boundaries: int = 0
    waits: int = 0
    findings: int = 0


@contextmanager
def walking(database_url: str) -> Iterator["Walk"]:
    """A walk on an empty, migrated database, which is empty again at the end."""
    walk = Walk(database_url)
    try:
        yield walk
    finally:
        walk.close()


class Gate:
    """Stops the thread that uses a database before its n-th statement or commit."""

    def __init__(self, database: Database, messages: "SimpleQueue[str]") -> None:
        self._messages = messages
        self._left = 0
        self._opened = threading.Event()
        event.listen(database.engine, "before_cursor_execute", self._passing)
        event.listen(database.engine, "commit", self._passing)

    def arm(self, boundary: int) -> None:
        self._left = boundary
        self._opened.clear()

    def open(self) -> None:
        self._left = 0
        self._opened.set()

    def _passing(self, *_: object) -> None:
        if self._left > 0:
            self._left -= 1
            if self._left == 0:
                self._messages.put("first stopped")
                self._opened.wait(PATIENCE_SECONDS)


class Turn:
    """The turn of one SQLite file's writers, which says when somebody has to wait for it."""

    def __init__(self, messages: "SimpleQueue[str]") -> None:
        self._messages = messages
        self._lock = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[None]:
        yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            self._messages.put("second waits")
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()


class Walk:
    """One migrated, empty database and everything that acts on it."""

    def __init__(self, database_url: str) -> None:
        settings = Settings(sqlite_synchronous="NORMAL")
        self._messages: SimpleQueue[str] = SimpleQueue()
        self._first = Database(database_url, settings)
        self._second = Database(database_url, settings)
        self._referee = Database(database_url, settings)
        self._databases = (self._first, self._second, self._referee)
        if self._first.is_sqlite:
            turn = Turn(self._messages)
            for database in self._databases:
                database.engine.latchwork_turn = turn  # type: ignore[attr-defined]
        for database in self._databases:
            database.prepare()
        self._gate = Gate(self._first, self._messages)
        self._threads = ThreadPoolExecutor(2)
        self._scenes = make_scenes(self._referee)
        self.totals = Totals()

    def close(self) -> None:
        """Leave an empty database."""
        self._threads.shutdown()
        self._referee.write(put_rows, {})
        for database in self._databases:
            database.dispose()

    def pair(self, first: Operation, second: Operation, scene: str) -> list[str]:
        """Every boundary of ``first``; one sentence for each broken rule."""
        chosen = self._scenes[scene]
        allowed = self._allowed(first, second, chosen)
        findings: list[str] = []
        for boundary in count(1):
            broken = self._boundary(first, second, chosen, boundary, allowed)
            if broken is None:
                break
            self.totals.boundaries += 1
            place = f"{first.name} stopped before step {boundary}, {second.name}, {scene}"
            findings += [f"{place}: {sentence}" for sentence in broken]
        self.totals.findings += len(findings)
        return findings

    def _boundary(
        self, first: Operation, second: Operation, scene: Scene, boundary: int, allowed: set[End]
    ) -> list[str] | None:
        """Stop at one boundary; None when ``first`` has fewer."""
        self._referee.write(put_rows, scene.rows)
        self._gate.arm(boundary)
        one = self._threads.submit(self._answer, first, self._first, scene, "first ended")
        if self._messages.get(timeout=PATIENCE_SECONDS) == "first ended":
            self._gate.open()
            one.result()
            return None
        two = self._threads.submit(self._answer, second, self._second, scene, "second ended")
        waited = self._waits()
        self._gate.open()
        answers = one.result(PATIENCE_SECONDS), two.result(PATIENCE_SECONDS)
        self._drain_messages()
        self.totals.waits += waited
        tables = self._referee.read(read_tables)
        broken = [sentence for check in CHECKS for sentence in check(tables)]
        end = End(*answers, digest(tables))
        if end not in allowed:
            broken.append(f"answers and rows that no order gives: {difference(end, allowed)}")
        return broken + self._races()

    def _waits(self) -> bool:
        """Return once the second operation has ended (False) or waits for the first (True)."""
        while True:
            try:
                return self._messages.get(timeout=POLL_SECONDS) == "second waits"
            except Empty:
                if not self._referee.is_sqlite and self._referee.read(somebody_waits):
                    return True

    def _drain_messages(self) -> None:
        while not self._messages.empty():
            self._messages.get()

    def _races(self) -> list[str]:
        met = self._first.retries + self._second.retries
        for database in self._databases:
            database.retries.clear()
        return [f"met {number} {race}" for race, number in met.items()]

    def _answer(
        self, operation: Operation, database: Database, scene: Scene, done: str | None = None
    ) -> str:
        """The operation's answer; a typed error is one, anything else is a finding."""
        try:
            return operation.act(database, scene)
        except LatchworkError as error:
            return type(error).__name__
        except Exception as error:  # noqa: BLE001 - reported: it fits no order
            return f"raw {error!r}"
        finally:
            if done:
                self._messages.put(done)

    def _allowed(self, first: Operation, second: Operation, scene: Scene) -> set[End]:
        """What the two operations may lead to: either order, each whole.

        An operation that skips locked rows may also have passed over those of the other.
        """
        pair = (first, second)
        passed_over: list[tuple[int, Sequence[str]]] = [(0, ())]
        if not self._referee.is_sqlite:
            passed_over += [
                (skipping, roots)
                for skipping, operation in enumerate(pair)
                if operation.skips_locked
                for roots in HELD_BY_OTHERS
            ]
        ends = set()
        for skipping, roots in passed_over:
            for order in ((0, 1), (1, 0)):
                self._referee.write(put_rows, scene.rows)
                answers = ["", ""]
                for which in order:
                    with self._held_by_others(roots if which == skipping else ()):
                        answers[which] = self._answer(pair[which], self._second, scene)
                rows = digest(self._referee.read(read_tables))
                ends.add(End(answers[0], answers[1], rows))
        self._races()
        self._drain_messages()
        return ends

    @contextmanager
    def _held_by_others(self, roots: Sequence[str]) -> Iterator[None]:
        with self._referee.engine.connect() as connection:
            if roots:
                chosen = schema.jobs.c.id.in_([named(name) for name in roots])
                statement = select(schema.jobs.c.sequence).where(chosen)
                connection.execute(locking(connection, statement, schema.jobs, wait=True))
            yield


def somebody_waits(connection: Connection) -> bool:
    return bool(connection.scalar(WAITING))


def digest(tables: Tables) -> tuple[Any, ...]:
    """What must be the same whoever came first by the clock: rows without positions and ids."""
    numbers = {sequence: NAMES[job.id] for sequence, job in tables.jobs.items()}
    jobs = [
        (
            numbers[sequence], job.state, job.attempt, job.claim_number, job.parents_remaining,
            job.owner, job.lease_expires_at, job.due_at, job.terminal_at, job.lapses,
            job.cancel_pending, job.cancel_requested_at, job.cause_code,
            NAMES.get(job.cause_parent_id), NAMES.get(job.cause_root_id), job.applied_claim,
            job.applied_outcome,
            tuple((row.event, row.state, row.attempt) for row in tables.logs[sequence]),
        )
        for sequence, job in tables.jobs.items()
    ]  # fmt: skip
    edges = [
        (numbers[edge.parent_sequence], numbers[edge.child_sequence], edge.is_open)
        for edge in tables.edges
    ]
    return (
        tuple(sorted(jobs, key=lambda job: job[0])),
        tuple(sorted(edges)),
        tuple(sorted(tables.actions.items())),
    )


def difference(end: End, allowed: set[End]) -> str:
    """The end in words, and how it differs from the nearest that is allowed."""
    wanted = {(other.first, other.second) for other in allowed}
    if (end.first, end.second) not in wanted:
        return f"answered {end.first!r} and {end.second!r}, not one of {sorted(wanted)}"
    nearest = next(o for o in allowed if (o.first, o.second) == (end.first, end.second))
    parts = [
        f"{ours} instead of {theirs}"
        for mine, other in zip(end.rows, nearest.rows, strict=True)
        for ours, theirs in zip(mine, other, strict=False)
        if ours != theirs
    ]
    return f"answered {end.first!r} and {end.second!r}: {'; '.join(parts) or 'more or fewer rows'}"
