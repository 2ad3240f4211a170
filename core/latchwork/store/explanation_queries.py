"""Gathering the facts that explain where a job is, for the sentences of the decisions."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, Select, literal, literal_column, select, tuple_

from latchwork.decisions import explanations
from latchwork.decisions.explanations import Ending, Gates, Lease, Reason
from latchwork.decisions.states import JobState
from latchwork.store.column_types import UtcTime
from latchwork.store.dialects import BIG
from latchwork.store.job_rows import find_job, read_parents
from latchwork.store.node_queries import read_nodes
from latchwork.store.queue_queries import COUNT_BOUND, bounded
from latchwork.store.schema import in_state, jobs, nodes, queues
from latchwork.views import Explanation, JobView

MAX_HOLDERS = 20
"""Jobs that are named as holders of a full limit's slots."""


def explain(connection: Connection, job_id: UUID, *, now: datetime) -> Explanation | None:
    """Why the job is where it is; None if it is unknown."""
    job = find_job(connection, job_id)
    if job is None:
        return None
    match job.state:
        case JobState.SCHEDULED if job.due_at > now:
            reason = explanations.why_not_due(job.due_at, job.attempt, job.max_attempts, now)
            return _explanation(reason, job)
        case JobState.SCHEDULED:
            return _explain_due(connection, job, now)
        case JobState.AWAITING_PARENT:
            return _explain_waiting(connection, job)
        case JobState.LEASED:
            return _explain_leased(connection, job, now)
        case _:
            return _explain_end(connection, job)


def _explanation(
    reason: Reason, job: JobView, about: tuple[UUID, ...] = (), node: str | None = None
) -> Explanation:
    return Explanation(reason.code, reason.sentence, jobs=about, queue=job.queue, node=node)


def _explain_due(connection: Connection, job: JobView, now: datetime) -> Explanation:
    gate = connection.execute(
        select(queues.c.paused_at, queues.c.paused_by, queues.c.concurrency_limit).where(
            queues.c.name == job.queue
        )
    ).first()
    paused_at, paused_by, limit = (None, None, None) if gate is None else gate
    holders = [] if limit is None else _slot_holders(connection, job.queue, limit)
    serving = [
        node for node in read_nodes(connection, now=now) if node.live and job.queue in node.queues
    ]
    gates = Gates(
        paused_at=paused_at,
        paused_by=paused_by,
        limit=limit,
        held=len(holders),
        serving=len(serving),
        knowing=sum(job.wire_name in node.wire_names for node in serving),
    )
    ahead = bounded(len(connection.scalars(_due_before(job)).all()))
    reason = explanations.why_not_claimed(
        job.queue, job.wire_name, gates, ahead.value, str(ahead), now
    )
    about = tuple(holders[:MAX_HOLDERS]) if reason.code == "limit_full" else ()
    return _explanation(reason, job, about)


def _slot_holders(connection: Connection, queue: str, limit: int) -> list[UUID]:
    """The jobs that hold the queue's slots, as many as its limit allows."""
    leased = select(jobs.c.id).where(in_state(JobState.LEASED), jobs.c.queue == queue)
    return list(connection.scalars(leased.order_by(jobs.c.lease_expires_at).limit(limit)))


def _due_before(job: JobView) -> Select[int]:
    """One row for each job that is claimed before ``job``, up to one more than the bound."""
    place = tuple_(jobs.c.due_at, jobs.c.sequence)
    return (
        select(literal_column("1"))
        .where(
            jobs.c.queue == job.queue,
            in_state(JobState.SCHEDULED),
            place < tuple_(literal(job.due_at, UtcTime()), literal(job.sequence, BIG)),
        )
        .limit(COUNT_BOUND + 1)
    )


def _explain_waiting(connection: Connection, job: JobView) -> Explanation:
    parents = read_parents(connection, job.sequence)
    still_open = [parent for parent in parents if parent.open]
    reason = explanations.why_waiting(
        [(parent.step or parent.wire_name, parent.state) for parent in still_open],
        settled=len(parents) - len(still_open),
    )
    return _explanation(reason, job, tuple(parent.id for parent in still_open))


def _explain_leased(connection: Connection, job: JobView, now: datetime) -> Explanation:
    assert job.owner is not None and job.lease_expires_at is not None  # noqa: S101, PT018 - a CHECK
    lease = Lease(
        owner=job.owner,
        expires_at=job.lease_expires_at,
        seen_at=connection.scalar(
            select(nodes.c.last_seen_at).where(nodes.c.worker_id == job.owner)
        ),
        cancel_asked_at=job.cancel_requested_at if job.cancel_pending else None,
        cancel_asked_by=job.cancel_requested_by,
        cancel_delivered_at=job.cancel_delivered_at,
    )
    return _explanation(explanations.why_leased(lease, job.lapses, now), job, node=job.owner)


def _explain_end(connection: Connection, job: JobView) -> Explanation:
    cause = job.cause
    ancestors = [] if cause is None else [cause.parent_id, cause.root_id]
    about = tuple(dict.fromkeys(one for one in ancestors if one is not None))
    names: dict[UUID | None, str] = {one: f"job {one}" for one in about}
    if about:
        named = select(jobs.c.id, jobs.c.step, jobs.c.wire_name).where(jobs.c.id.in_(about))
        names |= {one: step or wire_name for one, step, wire_name in connection.execute(named)}
    asked = cause is not None and cause.code == "operator_cancel"
    reason = explanations.why_ended(
        Ending(
            state=job.state,
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            code=None if cause is None else cause.code,
            type=None if cause is None else cause.type,
            asked_by=cause.text if cause is not None and asked else None,
            parent=None if cause is None else names.get(cause.parent_id),
            parent_state=None if cause is None else cause.parent_state,
            root=None if cause is None else names.get(cause.root_id),
        )
    )
    return _explanation(reason, job, about)
