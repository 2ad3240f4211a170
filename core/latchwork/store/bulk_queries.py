"""Reading operations on many jobs, and what one would do before it is begun."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, select

from latchwork.bulk_views import BulkAction, BulkMember, BulkOperation, BulkPreview
from latchwork.decisions.bulk import cancellable, requeueable
from latchwork.decisions.states import JobState
from latchwork.store.job_queries import find_members
from latchwork.store.job_rows import LIST_COLUMNS, job_view
from latchwork.store.previews import BOUND, cancelled_below, would_cancel
from latchwork.store.schema import jobs
from latchwork.store.service_tables import bulk_members, bulk_operations
from latchwork.views import BoundedCount, JobFilter

MAX_OPERATIONS = 50
MAX_MEMBERS = 200


def acted_on(action: BulkAction, job_filter: JobFilter) -> JobFilter | None:
    """The filter narrowed to the states that ``action`` is legal in; None when none is left."""
    legal = requeueable if action is BulkAction.REQUEUE else cancellable
    states = legal(job_filter.states)
    return replace(job_filter, states=states) if states else None


def preview(connection: Connection, action: BulkAction, job_filter: JobFilter) -> BulkPreview:
    """What the action would do to the jobs of a filter, counted up to the bound."""
    chosen = acted_on(action, job_filter)
    if chosen is None:
        return BulkPreview(action, None, BoundedCount(0))
    found = find_members(connection, chosen, before=None, limit=BOUND)
    more = found.more or found.stopped_at is not None
    sequences = [row.sequence for row in found.rows]
    told = BulkPreview(action, chosen, BoundedCount(len(sequences), capped=more))
    if action is BulkAction.REQUEUE:
        below = cancelled_below(connection, sequences)
        return replace(told, stays_cancelled=_of_some(below, more=more))
    return replace(told, cascade=_of_some(would_cancel(connection, sequences), more=more))


def list_operations(
    connection: Connection, *, limit: int, now: datetime
) -> tuple[BulkOperation, ...]:
    """The newest operations first."""
    statement = _operations().order_by(
        bulk_operations.c.created_at.desc(), bulk_operations.c.id.desc()
    )
    rows = connection.execute(statement.limit(min(limit, MAX_OPERATIONS)))
    return tuple(_view(row, now) for row in rows)


def find_operation(
    connection: Connection, operation_id: UUID, *, now: datetime
) -> BulkOperation | None:
    """The operation of this id, or None."""
    row = connection.execute(_operations().where(bulk_operations.c.id == operation_id)).first()
    return None if row is None else _view(row, now)


def list_members(
    connection: Connection, operation_id: UUID, *, after: int, limit: int
) -> tuple[BulkMember, ...]:
    """Members in their order, from the one after number ``after`` on, with their jobs as they are.

    A job that was purged since is None.
    """
    members = bulk_members.c
    statement = (
        select(members.number, members.job_id, members.outcome)
        .where(members.operation_id == operation_id, members.number > after)
        .order_by(members.number)
        .limit(min(limit, MAX_MEMBERS))
    )
    rows = connection.execute(statement).all()
    stored = _jobs_by_id(connection, [row.job_id for row in rows])
    return tuple(BulkMember(*row, job=stored.get(row.job_id)) for row in rows)


def decode_filter(criteria: str) -> JobFilter:
    """The filter that is stored with an operation."""
    given: dict[str, Any] = json.loads(criteria)
    given["states"] = tuple(JobState(state) for state in given.get("states", ()))
    if isinstance(given.get("tag"), list):
        given["tag"] = tuple(given["tag"])
    return JobFilter(**given)


def _operations() -> Any:
    newest = select(func.max(bulk_members.c.number)).where(
        bulk_members.c.operation_id == bulk_operations.c.id
    )
    return select(bulk_operations, newest.scalar_subquery().label("listed"))


def _view(row: Any, now: datetime) -> BulkOperation:
    leased = row.lease_expires_at is not None and row.lease_expires_at > now
    return BulkOperation(
        id=row.id,
        action=BulkAction(row.action),
        actor=row.actor,
        job_filter=decode_filter(row.criteria),
        created_at=row.created_at,
        listed=row.listed or 0,
        total=row.total,
        done=row.done,
        skipped=row.skipped,
        outcomes=json.loads(row.outcomes),
        allowed=row.allowed,
        worker=row.owner if leased else None,
        finished_at=row.finished_at,
        stopped_by=row.stopped_by,
    )


def _jobs_by_id(connection: Connection, ids: Iterable[UUID]) -> dict[UUID, Any]:
    rows = connection.execute(select(*LIST_COLUMNS).where(jobs.c.id.in_(list(ids))))
    return {row.id: job_view(row) for row in rows}


def _of_some(count: BoundedCount, *, more: bool) -> BoundedCount:
    """A count of what lies below the first thousand members: there may be more below the others."""
    return BoundedCount(count.value, capped=count.capped or more)
