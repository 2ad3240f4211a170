"""Small helpers for tests of the store: jobs in any state, at a time that the test says."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, event, func, select

from latchwork.action_results import CancelResult, RequeueResult
from latchwork.decisions.leases import Hold
from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.store import expiry, heartbeats, operator_actions, schema
from latchwork.store.claiming import ClaimedJob, claim
from latchwork.store.database import Database
from latchwork.store.enqueueing import NewJob, insert_jobs
from latchwork.store.outcomes import Answer, OutcomeKind, Report, report_outcomes
from latchwork.store.tags import decode_tags
from latchwork.views import Tag

S = JobState
START = datetime(2026, 1, 1, tzinfo=UTC)
WORKER = "node-1"
ACTOR = "anna"
LEASE_SECONDS = 60
ON_SUCCESS = DependencyMode.ON_SUCCESS
ON_ANY_TERMINAL = DependencyMode.ON_ANY_TERMINAL

SUCCESS = OutcomeKind.SUCCESS
FAILURE = OutcomeKind.FAILURE
CANCELLED = OutcomeKind.CANCELLED
UNROUTABLE = OutcomeKind.UNROUTABLE

ENDS = {
    S.SUCCEEDED: SUCCESS,
    S.DEAD_LETTERED: FAILURE,
    S.CANCELLED: CANCELLED,
    S.QUARANTINED: UNROUTABLE,
}
"""The outcome that ends a Leased job in each terminal state."""


@dataclass
class Store:
    """A database and the time; each job gets a queue of its own unless the test names one."""

    database: Database
    now: datetime = START
    _numbers: Iterator[int] = field(default_factory=count)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def new_job(self, *parents: UUID, **given: Any) -> NewJob:
        """A job to enqueue, due now."""
        values: dict[str, Any] = {
            "id": uuid4(),
            "wire_name": "pack",
            "queue": f"queue-{next(self._numbers)}",
            "payload": "{}",
            "retry": RetryPolicy(),
            "due_at": self.now,
            "parents": parents,
        }
        return NewJob(**values | given)

    def enqueue(self, *parents: UUID, **given: Any) -> UUID:
        """Enqueue one job and return its id."""
        new = self.new_job(*parents, **given)
        self.database.write(insert_jobs, [new], now=self.now)
        return new.id

    def enqueue_all(self, jobs: Sequence[NewJob]) -> list[UUID]:
        """Enqueue a graph in one transaction."""
        self.database.write(insert_jobs, jobs, now=self.now)
        return [job.id for job in jobs]

    def claim(
        self, queue: str, limit: int = 1, *, worker: str = WORKER, allow_suspect: bool = True
    ) -> list[ClaimedJob]:
        """Claim from one queue."""
        return self.database.write(
            claim, worker_id=worker, queue=queue, limit=limit, lease_seconds=LEASE_SECONDS,
            now=self.now, allow_suspect=allow_suspect,
        ).jobs  # fmt: skip

    def lease(self, job_id: UUID, *, worker: str = WORKER) -> Hold:
        """Claim this job from its own queue."""
        claimed = self.claim(self.row(job_id).queue, worker=worker)
        assert [job.id for job in claimed] == [job_id]
        return claimed[0].hold

    def hold(self, job_id: UUID) -> Hold:
        """The fence of the job's last claim."""
        row = self.row(job_id)
        return Hold(row.sequence, row.attempt, row.claim_number)

    def report(self, *reports: Report, worker: str = WORKER, wait: bool = False) -> list[Answer]:
        """Report a batch of outcomes."""
        return self.database.write(report_outcomes, worker, reports, now=self.now, wait=wait)

    def finish(
        self, hold: Hold, kind: OutcomeKind = SUCCESS, *, worker: str = WORKER, **given: Any
    ) -> Answer:
        """Report one outcome."""
        return self.report(Report(hold, kind, **given), worker=worker)[0]

    def end(self, job_id: UUID, state: JobState = S.SUCCEEDED, **given: Any) -> None:
        """Bring a Scheduled or Leased job to this end."""
        leased = self.state(job_id) is S.LEASED
        hold = self.hold(job_id) if leased else self.lease(job_id)
        if state is S.CANCELLED:
            self.cancel(job_id)
        self.finish(hold, ENDS[state], **given)
        assert self.state(job_id) is state

    def renew(self, *holds: Hold, worker: str = WORKER) -> list[heartbeats.Renewal]:
        """One heartbeat."""
        return self.database.write(
            heartbeats.renew, worker, holds, lease_seconds=LEASE_SECONDS, now=self.now
        )

    def lapsed(self) -> list[expiry.LapsedJob]:
        """What a sweep would find now."""
        return self.database.read(expiry.read_lapsed, now=self.now, limit=100)

    def sweep(self, next_due_at: datetime | None = None) -> int:
        """Expire every lapsed lease with the same verdict."""
        verdicts = [expiry.LapseVerdict(job, next_due_at) for job in self.lapsed()]
        return self.database.write(expiry.expire, verdicts, now=self.now)

    def cancel(self, job_id: UUID, *, actor: str = ACTOR) -> CancelResult:
        """An operator's cancel."""
        return self.database.write(operator_actions.cancel, job_id, actor=actor, now=self.now)

    def requeue(self, job_id: UUID, *, actor: str = ACTOR) -> RequeueResult:
        """An operator's requeue."""
        return self.database.write(operator_actions.requeue, job_id, actor=actor, now=self.now)

    def in_state(self, state: JobState, **given: Any) -> UUID:
        """A job in any state, brought there by legal moves."""
        if state is S.AWAITING_PARENT:
            return self.enqueue(self.enqueue(), **given)
        job_id = self.enqueue(**given)
        if state is S.LEASED:
            self.lease(job_id)
        elif state.terminal:
            self.end(job_id, state)
        assert self.state(job_id) is state
        return job_id

    def row(self, job_id: UUID) -> Row[Any]:
        """The job's row."""
        statement = select(schema.jobs).where(schema.jobs.c.id == job_id)
        return self.database.read(lambda connection: connection.execute(statement).one())

    def state(self, job_id: UUID) -> JobState:
        """The job's state."""
        state: JobState = self.row(job_id).state
        return state

    def states(self, *job_ids: UUID) -> list[JobState]:
        """The states of several jobs."""
        return [self.state(job_id) for job_id in job_ids]

    def log(self, job_id: UUID) -> Sequence[Row[Any]]:
        """The job's log rows, oldest first."""
        log = schema.transitions
        statement = select(log).where(log.c.job_id == job_id).order_by(log.c.ordinal)
        return self.database.read(lambda connection: connection.execute(statement).all())

    def path(self, job_id: UUID) -> list[JobState]:
        """The states that the job went through, as its log tells."""
        return [row.state for row in self.log(job_id)]

    def edges(self, child: UUID) -> dict[UUID, bool]:
        """The child's parents, and whether each edge is open."""
        parent = schema.jobs.alias()
        statement = (
            select(parent.c.id, schema.edges.c.is_open)
            .join(schema.edges, schema.edges.c.parent_sequence == parent.c.sequence)
            .join(schema.jobs, schema.jobs.c.sequence == schema.edges.c.child_sequence)
            .where(schema.jobs.c.id == child)
        )
        rows = self.database.read(lambda connection: connection.execute(statement).all())
        return {row.id: row.is_open for row in rows}

    def outputs(self) -> dict[UUID, str]:
        """Every stored output."""
        columns = select(schema.jobs.c.id, schema.outputs.c.output)
        statement = columns.join(schema.jobs)
        rows = self.database.read(lambda connection: connection.execute(statement).all())
        return {row.id: row.output for row in rows}

    def audit_rows(self) -> Sequence[Row[Any]]:
        """The audit trail."""
        statement = select(schema.audit).order_by(schema.audit.c.id)
        return self.database.read(lambda connection: connection.execute(statement).all())

    def tags(self, job_id: UUID) -> tuple[Tag, ...]:
        """The job's tags as a claim would hand them over."""
        return decode_tags(self.row(job_id).tags)

    def dump(self) -> dict[str, list[Any]]:
        """Every row of every table, to prove that nothing changed."""

        def read(connection: Any) -> dict[str, list[Any]]:
            return {
                table.name: sorted(map(repr, connection.execute(select(table))))
                for table in schema.metadata.sorted_tables
            }

        return self.database.read(read)

    def count(self, state: JobState) -> int:
        """How many jobs are in a state."""
        statement = select(func.count()).where(schema.jobs.c.state == state)
        return self.database.read(lambda connection: connection.execute(statement).scalar_one())


@contextmanager
def counted_statements(database: Database) -> Iterator[list[str]]:
    """The statements sent while this is open, with BEGIN and COMMIT left out."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if not statement.startswith("BEGIN"):
            statements.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
