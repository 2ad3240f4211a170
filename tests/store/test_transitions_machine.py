"""Any order of operations on any graph: the audit holds at the end, and between."""

import tempfile
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    multiple,
    rule,
)

from latchwork.decisions.leases import Hold
from latchwork.decisions.states import DependencyMode
from latchwork.settings import Settings
from latchwork.store import heartbeats
from latchwork.store.database import Database
from latchwork.store.outcomes import OutcomeKind, Report
from tests.audit import audit
from tests.store.builders import CANCELLED, FAILURE, START, SUCCESS, UNROUTABLE, Store

workers = st.sampled_from(["node-1", "node-2"])
seconds = st.sampled_from([0, 1, 59, 60, 61])


class StoreMachine(RuleBasedStateMachine):
    """Operators, two nodes and a sweep at work on one SQLite file."""

    jobs: Bundle[UUID] = Bundle("jobs")
    holds: Bundle[tuple[str, Hold]] = Bundle("holds")

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "latchwork.db"
        database = Database(f"sqlite:///{path}", Settings(sqlite_synchronous="NORMAL"))
        self.store = Store(database, START)

    @rule(
        target=jobs,
        parents=st.lists(jobs, max_size=4),
        mode=st.sampled_from(DependencyMode),
        due_in=seconds,
    )
    def enqueue(self, parents: list[UUID], mode: DependencyMode, due_in: int) -> UUID:
        due_at = self.store.now + timedelta(seconds=due_in)
        return self.store.enqueue(*parents, mode=mode, due_at=due_at, queue="work")

    @rule(target=holds, worker=workers, limit=st.integers(1, 3), allow_suspect=st.booleans())
    def claim(
        self, worker: str, limit: int, allow_suspect: bool
    ) -> MultipleResults[tuple[str, Hold]]:
        claimed = self.store.claim("work", limit, worker=worker, allow_suspect=allow_suspect)
        return multiple(*((worker, job.hold) for job in claimed))

    @rule(
        held=holds,
        kind=st.sampled_from([SUCCESS, FAILURE, UNROUTABLE]),
        retry_in=st.none() | seconds,
        wait=st.booleans(),
    )
    def report(
        self, held: tuple[str, Hold], kind: OutcomeKind, retry_in: int | None, wait: bool
    ) -> None:
        worker, hold = held
        (renewal,) = self.store.renew(hold, worker=worker)
        kind = CANCELLED if renewal.cancel_requested else kind
        due_at = None if retry_in is None else self.store.now + timedelta(seconds=retry_in)
        report = Report(hold, kind, next_due_at=due_at, output="1", tags=("seen",))
        self.store.report(report, worker=worker, wait=wait)

    @rule(held=holds)
    def fail_whatever_was_asked(self, held: tuple[str, Hold]) -> None:
        worker, hold = held
        self.store.finish(hold, FAILURE, worker=worker, next_due_at=self.store.now)

    @rule(held=holds)
    def release(self, held: tuple[str, Hold]) -> None:
        worker, hold = held
        self.store.database.write(heartbeats.release, worker, [hold], now=self.store.now)

    @rule(job_id=jobs)
    def cancel(self, job_id: UUID) -> None:
        self.store.cancel(job_id)

    @rule(job_id=jobs)
    def requeue(self, job_id: UUID) -> None:
        self.store.requeue(job_id)

    @rule(dead_letter=st.booleans())
    def sweep(self, dead_letter: bool) -> None:
        self.store.sweep(None if dead_letter else self.store.now)

    @rule(passed=seconds)
    def wait(self, passed: int) -> None:
        self.store.wait(passed)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            violations = self.store.database.read(audit)
            self.store.database.dispose()
            self.folder.cleanup()
            assert violations == []


StoreMachine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStoreMachine = StoreMachine.TestCase
