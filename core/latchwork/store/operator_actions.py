"""What an operator does to jobs: cancel and requeue, each with its audit row (sections 2, 8)."""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select, update

from latchwork.action_results import CancelOutcome, CancelResult, RequeueOutcome, RequeueResult
from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import cancel_edge, requeue_edge
from latchwork.store import audit, ending
from latchwork.store.dialects import BIG, array, in_array, limit_lock_seconds
from latchwork.store.moves import Cause, LockedJob, Move
from latchwork.store.outcomes import OPERATOR_CANCEL
from latchwork.store.schema import jobs

LOCK_SECONDS = 2.0


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
        request_cancels(connection, [job.sequence], actor, now)
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


def request_cancels(
    connection: Connection, sequences: Collection[int], actor: str, now: datetime
) -> None:
    """Raise the flags that the next heartbeats carry to the workers; no log rows."""
    if not sequences:
        return
    found = in_array(connection.dialect.name, jobs.c.sequence, "sequences", BIG)
    connection.execute(
        update(jobs)
        .where(found)
        .values(cancel_pending=True, cancel_requested_at=now, cancel_requested_by=actor),
        {"sequences": array(connection, sequences, BIG)},
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
