"""What an operator does to jobs: cancel and requeue, each with its audit row (sections 2, 8)."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, select, update

from latchwork.decisions.dependencies import settle
from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import cancel_edge, requeue_edge
from latchwork.store import audit, ending
from latchwork.store.dialects import limit_lock_seconds
from latchwork.store.latches import read_reach
from latchwork.store.moves import Cause, LockedJob, Move
from latchwork.store.outcomes import OPERATOR_CANCEL
from latchwork.store.schema import edges, jobs
from latchwork.views import (
    ActionPreview,
    BoundedCount,
    CancelOutcome,
    CancelResult,
    RequeueOutcome,
    RequeueResult,
)

LOCK_SECONDS = 2.0
PREVIEW_BOUND = 1_000


def cancel(
    connection: Connection,
    job_id: UUID,
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> CancelResult:
    """Cancel a job that has not started, or ask the worker of a running one to stop it.

    ``request_id`` makes a repeat after a lost answer return the first answer.
    """
    job, held = _lock_job(connection, job_id)
    if job is None:
        return CancelResult(CancelOutcome.NOT_FOUND, None)
    if earlier := audit.detail_of_request(connection, request_id):
        return CancelResult(CancelOutcome(earlier["outcome"]), JobState(earlier["from"]))
    if job.state.terminal:
        return CancelResult(CancelOutcome.REFUSED, job.state)
    edge = cancel_edge(job.state)
    if edge is None:
        outcome = CancelOutcome.REQUESTED
        if job.cancel_pending:
            return CancelResult(outcome, job.state)
        _request_cancel(connection, job, actor, now)
    else:
        outcome = CancelOutcome.CANCELLED
        cause = Cause(OPERATOR_CANCEL, text=actor)
        ending.write(connection, [Move.of(job, edge, now, cause=cause)], held, now, wait=True)
    detail = {"outcome": outcome.value, "from": job.state.value}
    _audit(connection, "cancel", job_id, actor, now, request_id, detail)
    return CancelResult(outcome, job.state)


def requeue(
    connection: Connection,
    job_id: UUID,
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> RequeueResult:
    """Give a dead-lettered or quarantined job a new life: Scheduled, due now, attempt 0."""
    job, held = _lock_job(connection, job_id)
    if job is None:
        return RequeueResult(RequeueOutcome.NOT_FOUND, None)
    if earlier := audit.detail_of_request(connection, request_id):
        return RequeueResult(RequeueOutcome.REQUEUED, JobState(earlier["from"]))
    edge = requeue_edge(job.state)
    if edge is None:
        return RequeueResult(RequeueOutcome.REFUSED, job.state)
    ending.write(connection, [Move.of(job, edge, now, due_at=now)], held, now, wait=True)
    detail = {"outcome": RequeueOutcome.REQUEUED.value, "from": job.state.value}
    _audit(connection, "requeue", job_id, actor, now, request_id, detail)
    return RequeueResult(RequeueOutcome.REQUEUED, job.state)


def _lock_job(
    connection: Connection, job_id: UUID
) -> tuple[LockedJob | None, dict[int, LockedJob]]:
    limit_lock_seconds(connection, LOCK_SECONDS)
    sequence = connection.scalar(select(jobs.c.sequence).where(jobs.c.id == job_id))
    held = {} if sequence is None else ending.lock_roots(connection, [sequence])
    return (None if sequence is None else held.get(sequence)), held


def _request_cancel(connection: Connection, job: LockedJob, actor: str, now: datetime) -> None:
    """Raise the flag that the next heartbeat carries to the worker; no log row."""
    connection.execute(
        update(jobs)
        .where(jobs.c.sequence == job.sequence)
        .values(cancel_pending=True, cancel_requested_at=now, cancel_requested_by=actor)
    )


def _audit(
    connection: Connection,
    action: str,
    job_id: UUID,
    actor: str,
    now: datetime,
    request_id: UUID | None,
    detail: dict[str, Any],
) -> None:
    audit.append(
        connection, at=now, actor=actor, action=action, subject_kind="job", subject=str(job_id),
        detail=detail, request_id=request_id,
    )  # fmt: skip


def preview_cancel(connection: Connection, job_id: UUID) -> ActionPreview | None:
    """What a cancel would do now; None for an unknown job. Takes no locks."""
    row = _state_of(connection, job_id)
    if row is None:
        return None
    state: JobState = row.state
    if state.terminal:
        return ActionPreview(
            allowed=False, state=state, reason=f"The job has ended: it is {state.label}."
        )
    reach = read_reach(connection, [row.sequence], [row.sequence])
    settlement = settle({row.sequence: JobState.CANCELLED}, reach)
    return ActionPreview(
        allowed=True,
        state=state,
        reason=_CANCEL_REASONS[state],
        cascade=_bounded(len(settlement.cancelled)),
        released=_bounded(
            _released(connection, settlement.counted_down) if settlement.counted_down else 0
        ),
    )


_CANCEL_REASONS = {
    JobState.SCHEDULED: "The job has not started: it is cancelled at once.",
    JobState.AWAITING_PARENT: "The job waits for its parents: it is cancelled at once.",
    JobState.LEASED: "The job runs: its worker is asked to stop it, and says when it has.",
}


def preview_requeue(connection: Connection, job_id: UUID) -> ActionPreview | None:
    """What a requeue would do now; None for an unknown job. Takes no locks."""
    row = _state_of(connection, job_id)
    if row is None:
        return None
    state: JobState = row.state
    if requeue_edge(state) is None:
        reason = (
            f"Only Dead-Lettered and Quarantined jobs can be requeued; this one is {state.label}."
        )
        return ActionPreview(allowed=False, state=state, reason=reason)
    return ActionPreview(
        allowed=True,
        state=state,
        reason="The job becomes due now, with attempt 0 and its whole retry budget.",
        stays_cancelled=_bounded(_cancelled_below(connection, row.sequence)),
    )


def _state_of(connection: Connection, job_id: UUID) -> Any:
    columns = select(jobs.c.sequence, jobs.c.state)
    return connection.execute(columns.where(jobs.c.id == job_id)).one_or_none()


def _released(connection: Connection, counted_down: dict[int, int]) -> int:
    some = sorted(counted_down)[: PREVIEW_BOUND + 1]
    latches = select(jobs.c.sequence, jobs.c.parents_remaining).where(jobs.c.sequence.in_(some))
    return sum(
        1
        for row in connection.execute(latches)
        if row.parents_remaining == counted_down[row.sequence]
    )


def _cancelled_below(connection: Connection, sequence: int) -> int:
    """How many descendants were cancelled through this job, counted up to the bound."""
    step = (
        select(edges.c.child_sequence.label("sequence"))
        .join(jobs, jobs.c.sequence == edges.c.child_sequence)
        .where(jobs.c.state == JobState.CANCELLED)
    )
    below = step.where(edges.c.parent_sequence == sequence).cte("below", recursive=True)
    below = below.union(step.join(below, below.c.sequence == edges.c.parent_sequence))
    bounded = select(below.c.sequence).limit(PREVIEW_BOUND + 1).subquery()
    return connection.scalar(select(func.count()).select_from(bounded)) or 0


def _bounded(count: int) -> BoundedCount:
    return BoundedCount(min(count, PREVIEW_BOUND), count > PREVIEW_BOUND)
