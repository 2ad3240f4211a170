"""One job as it is read: the columns of lists and how a row becomes a view."""

from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select

from latchwork.store.policies import decode_policy
from latchwork.store.schema import edges, jobs, outputs
from latchwork.store.tags import decode_tags
from latchwork.views import CauseView, JobDetail, JobView, OutputRow, RelatedJob

MAX_RELATED = 200
"""Children that a job's page lists; there may be any number."""

LIST_COLUMNS = tuple(
    jobs.c[name]
    for name in (
        "sequence", "id", "wire_name", "queue", "state", "state_since", "attempt", "retry_policy",
        "claim_number", "enqueued_at", "due_at", "owner", "lease_expires_at", "lapses",
        "parents_remaining", "mode", "cancel_pending", "cancel_requested_at", "cancel_requested_by",
        "cancel_delivered_at", "terminal_at", "cause_code", "cause_type", "cause_text",
        "cause_parent_id", "cause_parent_state", "cause_root_id", "tags", "workflow_id", "step",
    )
)  # fmt: skip
"""What lists read of a job: no payload, no output."""


def job_view(row: Any) -> JobView:
    """The view of a row of ``LIST_COLUMNS``."""
    cause = None
    if row.cause_code is not None:
        cause = CauseView(
            code=row.cause_code,
            type=row.cause_type,
            text=row.cause_text,
            parent_id=row.cause_parent_id,
            parent_state=row.cause_parent_state,
            root_id=row.cause_root_id,
        )
    return JobView(
        id=row.id,
        sequence=row.sequence,
        wire_name=row.wire_name,
        queue=row.queue,
        state=row.state,
        state_since=row.state_since,
        attempt=row.attempt,
        max_attempts=decode_policy(row.retry_policy).max_attempts,
        claim_number=row.claim_number,
        enqueued_at=row.enqueued_at,
        due_at=row.due_at,
        owner=row.owner,
        lease_expires_at=row.lease_expires_at,
        lapses=row.lapses,
        parents_remaining=row.parents_remaining,
        mode=row.mode,
        cancel_pending=row.cancel_pending,
        cancel_requested_at=row.cancel_requested_at,
        cancel_requested_by=row.cancel_requested_by,
        cancel_delivered_at=row.cancel_delivered_at,
        terminal_at=row.terminal_at,
        cause=cause,
        tags=decode_tags(row.tags),
        workflow_id=row.workflow_id,
        step=row.step,
    )


def find_job(connection: Connection, job_id: UUID) -> JobView | None:
    """The job of this id, or None."""
    row = connection.execute(select(*LIST_COLUMNS).where(jobs.c.id == job_id)).first()
    return None if row is None else job_view(row)


def find_output(connection: Connection, job_id: UUID) -> OutputRow:
    """The output that a job's success stored."""
    found = connection.execute(
        select(jobs.c.state, outputs.c.output).outerjoin(outputs).where(jobs.c.id == job_id)
    ).first()
    if found is None:
        return OutputRow(has_output=False, output=None, state=None)
    return OutputRow(has_output=found.output is not None, output=found.output, state=found.state)


def find_detail(connection: Connection, job_id: UUID, *, with_output: bool) -> JobDetail | None:
    """The job with its payload, related jobs and, if asked for, its output; None if unknown."""
    row = connection.execute(
        select(*LIST_COLUMNS, jobs.c.payload).where(jobs.c.id == job_id)
    ).first()
    if row is None:
        return None
    children = read_children(connection, row.sequence, limit=MAX_RELATED + 1)
    return JobDetail(
        job=job_view(row),
        payload=row.payload,
        retry=decode_policy(row.retry_policy),
        output=find_output(connection, job_id).output if with_output else None,
        parents=read_parents(connection, row.sequence),
        children=children[:MAX_RELATED],
        more_children=len(children) > MAX_RELATED,
    )


_RELATED_COLUMNS = (jobs.c.id, jobs.c.wire_name, jobs.c.step, jobs.c.state, edges.c.is_open)


def read_parents(connection: Connection, sequence: int) -> tuple[RelatedJob, ...]:
    """The parents of a job in enqueue order; there are at most 16."""
    rows = connection.execute(
        select(*_RELATED_COLUMNS)
        .join(jobs, jobs.c.sequence == edges.c.parent_sequence)
        .where(edges.c.child_sequence == sequence)
        .order_by(edges.c.parent_sequence)
    )
    return tuple(RelatedJob(*row) for row in rows)


def read_children(connection: Connection, sequence: int, *, limit: int) -> tuple[RelatedJob, ...]:
    """Up to ``limit`` children of a job, those still waiting for it first."""
    rows = connection.execute(
        select(*_RELATED_COLUMNS)
        .join(jobs, jobs.c.sequence == edges.c.child_sequence)
        .where(edges.c.parent_sequence == sequence)
        .order_by(edges.c.is_open.desc())
        .limit(limit)
    )
    return tuple(RelatedJob(*row) for row in rows)
