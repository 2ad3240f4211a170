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
from latchwork.store.queue_gates import check_lock, enter, limit_of_queue, slots_left
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


class ClaimedBatch(NamedTuple):
    """What one claim got; ``next_due_at`` is when the queue's next job becomes due, if any will."""

    jobs: list[ClaimedJob]
    next_due_at: datetime | None


@cache
def _look_statement(dialect: str, *, allow_suspect: bool) -> Any:
    """The queue's limit, its next due time and the due jobs that may be claimed, in one reading.

    One row for each job, or one without a job.
    """
    waiting = (jobs.c.queue == bindparam("queue")) & in_state(JobState.SCHEDULED)
    now = bindparam("now", type_=UtcTime())
    due = (
        select(*(jobs.c[name] for name in _DueJob._fields))
        .where(
            waiting,
            jobs.c.due_at <= now,
            true() if allow_suspect else jobs.c.lapses < SUSPECT_LAPSES,
        )
        .order_by(jobs.c.due_at, jobs.c.sequence)
        .limit(slots_left(dialect))
        .with_for_update(of=jobs, skip_locked=True)  # SQLite needs no locks and leaves it out
        .subquery("due")
    )
    later = select(jobs.c.due_at).where(waiting, jobs.c.due_at > now)
    next_due_at = later.order_by(jobs.c.due_at).limit(1).scalar_subquery()
    queue = select(
        limit_of_queue().label("concurrency_limit"), next_due_at.label("next_due_at")
    ).subquery()
    return (
        select(*queue.c, *due.c)
        .select_from(queue.outerjoin(due, true()))
        .order_by(due.c.due_at, due.c.sequence)
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
) -> ClaimedBatch:
    """Lease up to ``limit`` due jobs of ``queue`` to ``worker_id`` for ``lease_seconds``.

    None when the queue is paused, its concurrency limit is full or nothing is due. At most one
    suspect is among them, none without ``allow_suspect``.
    """
    shared = enter(connection, queue)
    look = _look_statement(connection.dialect.name, allow_suspect=allow_suspect)
    rows = connection.execute(look, {"queue": queue, "now": now, "wanted": limit}).all()
    concurrency_limit, next_due_at = rows[0][:2]
    check_lock(connection, queue, concurrency_limit, shared=shared)
    chosen = _one_suspect(_DueJob(*row[2:]) for row in rows if row[2] is not None)
    if not chosen:
        return ClaimedBatch([], next_due_at)
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
    return ClaimedBatch([_claimed(job, expires_at) for job in chosen], next_due_at)


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
