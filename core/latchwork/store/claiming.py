"""Claiming: a worker leases a batch of due jobs, row, attempt, lease and log row together.

Edge 3 of contract section 2, as section 4 says: ordered by due time and enqueue number within a
queue, never more than the free slots, never one job twice.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Text, bindparam, literal, null, select, true, update

from latchwork.decisions.leases import SUSPECT_LAPSES, Hold
from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import CLAIMED
from latchwork.store import log_writing
from latchwork.store.column_types import UtcTime
from latchwork.store.dialects import BIG, BatchWrite
from latchwork.store.policies import decode_policy
from latchwork.store.queue_gates import free_slots
from latchwork.store.schema import State, in_state, jobs
from latchwork.store.tags import decode_tags
from latchwork.views import Tag


class ClaimedJob(NamedTuple):
    """A job as its worker gets it; ``attempt`` and ``claim_number`` are those of this claim."""

    sequence: int
    id: UUID
    wire_name: str
    queue: str
    payload: str
    attempt: int
    claim_number: int
    retry: RetryPolicy
    tags: tuple[Tag, ...]
    lease_expires_at: datetime
    enqueued_at: datetime
    due_at: datetime
    workflow_id: UUID | None
    step: str | None
    lapses: int
    trace_context: str | None = None

    @property
    def hold(self) -> Hold:
        """The fence to show with every report."""
        return Hold(self.sequence, self.attempt, self.claim_number)

    @property
    def suspect(self) -> bool:
        """Whether this job may be killing its process: a node runs one such at a time."""
        return self.lapses >= SUSPECT_LAPSES


class _DueJob(NamedTuple):
    """A due job as the claim reads it, before it is leased."""

    sequence: int
    id: UUID
    wire_name: str
    queue: str
    payload: str
    attempt: int
    claim_number: int
    retry_policy: str
    tags: str
    enqueued_at: datetime
    due_at: datetime
    workflow_id: UUID | None
    step: str | None
    lapses: int
    trace_context: str | None
    state_since: datetime
    next_ordinal: int


@cache
def _due_statement(*, allow_suspect: bool) -> Any:
    return (
        select(*(jobs.c[name] for name in _DueJob._fields))
        .where(
            jobs.c.queue == bindparam("queue"),
            in_state(JobState.SCHEDULED),
            jobs.c.due_at <= bindparam("now", type_=UtcTime()),
            true() if allow_suspect else jobs.c.lapses < SUSPECT_LAPSES,
        )
        .order_by(jobs.c.due_at, jobs.c.sequence)
        .limit(bindparam("slots"))
        .with_for_update(of=jobs, skip_locked=True)  # SQLite needs no locks and leaves it out
    )


@cache
def _claim_statement(dialect: str) -> BatchWrite:
    def build(row: Any) -> Any:
        return (
            update(jobs)
            .where(jobs.c.sequence == row.sequence)
            .values(
                state=literal(JobState.LEASED, State),
                state_since=row.at,
                next_ordinal=jobs.c.next_ordinal + 1,
                attempt=jobs.c.attempt + 1,
                claim_number=jobs.c.claim_number + 1,
                owner=row.worker_id,
                lease_expires_at=row.expires_at,
                cancel_requested_at=null(),
                cancel_requested_by=null(),
                cancel_delivered_at=null(),
            )
        )

    columns: dict[str, Any] = {
        "sequence": BIG, "at": UtcTime(), "worker_id": Text(), "expires_at": UtcTime(),
    }  # fmt: skip
    return BatchWrite(dialect, columns, build)


def claim(
    connection: Connection,
    *,
    worker_id: str,
    queue: str,
    limit: int,
    lease_seconds: float,
    now: datetime,
    allow_suspect: bool = True,
) -> list[ClaimedJob]:
    """Lease up to ``limit`` due jobs of ``queue`` to ``worker_id`` for ``lease_seconds``.

    Empty when the queue is paused, its concurrency limit is full or nothing is due. At most one
    suspect is among them, none without ``allow_suspect``.
    """
    slots = free_slots(connection, queue, limit) if limit > 0 else 0
    if slots == 0:
        return []
    due = _due_statement(allow_suspect=allow_suspect)
    rows = connection.execute(due, {"queue": queue, "now": now, "slots": slots})
    chosen = _one_suspect(_DueJob(*row) for row in rows.all())
    if not chosen:
        return []
    expires_at = now + timedelta(seconds=lease_seconds)
    times = [max(now, job.state_since) for job in chosen]
    sequences, count = [job.sequence for job in chosen], len(chosen)
    values: list[Sequence[Any]] = [sequences, times, [worker_id] * count, [expires_at] * count]
    at_times = list(zip(chosen, times, strict=True))
    log_writing.append(
        connection,
        [_log_row(job, at, worker_id) for job, at in at_times],
        [
            (job.queue, job.wire_name, CLAIMED.source, CLAIMED.target, at, job.state_since)
            for job, at in at_times
        ],
        (_claim_statement(connection.dialect.name), values),
    )
    return [_claimed(job, expires_at) for job in chosen]


def next_due_at(connection: Connection, queue: str, *, now: datetime) -> datetime | None:
    """When the next job of ``queue`` that is not due yet becomes due; None if there is none."""
    parameters = {"queue": queue, "now": now}
    due_at: datetime | None = connection.scalar(_NEXT_DUE_STATEMENT, parameters)
    return due_at


_NEXT_DUE_STATEMENT = (
    select(jobs.c.due_at)
    .where(
        jobs.c.queue == bindparam("queue"),
        in_state(JobState.SCHEDULED),
        jobs.c.due_at > bindparam("now", type_=UtcTime()),
    )
    .order_by(jobs.c.due_at)
    .limit(1)
)


def _one_suspect(due: Iterable["_DueJob"]) -> list["_DueJob"]:
    """The due jobs, but only the first of those that may be killing their process."""
    chosen, suspects = [], 0
    for job in due:
        if job.lapses >= SUSPECT_LAPSES:
            suspects += 1
            if suspects > 1:
                continue
        chosen.append(job)
    return chosen


def _log_row(job: "_DueJob", at: datetime, worker_id: str) -> log_writing.LogRow:
    return log_writing.LogRow(
        job.sequence, job.next_ordinal, at, JobState.LEASED, JobState.SCHEDULED,
        CLAIMED.events[0], job.attempt + 1, job.queue, job.wire_name, worker_id, None, None,
    )  # fmt: skip


def _claimed(job: "_DueJob", expires_at: datetime) -> ClaimedJob:
    return ClaimedJob(
        job.sequence, job.id, job.wire_name, job.queue, job.payload, job.attempt + 1,
        job.claim_number + 1, decode_policy(job.retry_policy), decode_tags(job.tags), expires_at,
        job.enqueued_at, job.due_at, job.workflow_id, job.step, job.lapses,
        job.trace_context,
    )  # fmt: skip
