"""Beginning an operation on many jobs, letting its rest follow, stopping it: each audited."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, select, update

from latchwork.bulk_views import BulkAction, BulkOutcome
from latchwork.store import audit
from latchwork.store.dialects import insert_ignoring, limit_lock_seconds, locking
from latchwork.store.operator_actions import LOCK_SECONDS
from latchwork.store.schema import jobs
from latchwork.store.service_tables import bulk_operations
from latchwork.views import JobFilter

OPERATION = "operation"
"""The kind of subject that an operation is in the audit trail."""

CANARIES = 1
"""How many members go first when the operator wants to see how they fare."""


def begin(
    connection: Connection,
    operation_id: UUID,
    action: BulkAction,
    job_filter: JobFilter,
    *,
    actor: str,
    now: datetime,
    canary: bool,
) -> None:
    """Store an operation on the jobs that match now; a service lists and acts on them.

    Jobs enqueued later are no members. The id makes a repeat after a lost answer do nothing.
    """
    newest = connection.scalar(select(func.max(jobs.c.sequence))) or 0
    criteria = encode_filter(job_filter)
    begun = connection.scalar(
        insert_ignoring(connection.dialect.name, bulk_operations)
        .values(
            id=operation_id,
            action=action.value,
            actor=actor,
            criteria=criteria,
            created_at=now,
            allowed=CANARIES if canary else None,
            listed_sequence=newest + 1,
        )
        .on_conflict_do_nothing(index_elements=[bulk_operations.c.id])
        .returning(bulk_operations.c.id)
    )
    if begun is not None:
        audit.append(
            connection, at=now, actor=actor, action=f"bulk_{action.value}",
            subject_kind=OPERATION, subject=str(operation_id),
            detail={"criteria": json.loads(criteria), "canary": canary}, request_id=operation_id,
        )  # fmt: skip


def let_follow(
    connection: Connection, operation_id: UUID, *, actor: str, now: datetime, request_id: UUID
) -> BulkOutcome:
    """Let the members that wait behind the canary follow; refused when none waits."""
    row = _lock(connection, operation_id)
    if row is None:
        return BulkOutcome.NOT_FOUND
    if audit.detail_of_request(connection, request_id):
        return BulkOutcome.CONTINUED
    if row.finished_at is not None or row.allowed is None:
        return BulkOutcome.REFUSED
    _write(connection, operation_id, allowed=None)
    _audit(connection, "continue_operation", row, actor, now, request_id)
    return BulkOutcome.CONTINUED


def stop(
    connection: Connection, operation_id: UUID, *, actor: str, now: datetime, request_id: UUID
) -> BulkOutcome:
    """Act on no further member; what was done stays done. Refused when it has ended."""
    row = _lock(connection, operation_id)
    if row is None:
        return BulkOutcome.NOT_FOUND
    if audit.detail_of_request(connection, request_id):
        return BulkOutcome.STOPPED
    if row.finished_at is not None:
        return BulkOutcome.REFUSED
    _write(
        connection, operation_id,
        finished_at=now, stopped_by=actor, owner=None, lease_expires_at=None,
    )  # fmt: skip
    _audit(connection, "stop_operation", row, actor, now, request_id)
    return BulkOutcome.STOPPED


def encode_filter(job_filter: JobFilter) -> str:
    """A filter as it is stored with its operation."""
    given = {
        "states": [state.value for state in job_filter.states],
        "queue": job_filter.queue,
        "wire_name": job_filter.wire_name,
        "tag": job_filter.tag,
        "cause_code": job_filter.cause_code,
        "cause_type": job_filter.cause_type,
        "cause_group": job_filter.cause_group,
    }
    return json.dumps({name: value for name, value in given.items() if value}, ensure_ascii=False)


def _lock(connection: Connection, operation_id: UUID) -> Any:
    """Wait until nobody works on the operation, for a moment: its worker lets go between steps."""
    limit_lock_seconds(connection, LOCK_SECONDS)
    statement = select(bulk_operations).where(bulk_operations.c.id == operation_id)
    return connection.execute(
        locking(connection, statement, bulk_operations, wait=True)
    ).one_or_none()


def _write(connection: Connection, operation_id: UUID, **values: Any) -> None:
    mine = bulk_operations.c.id == operation_id
    connection.execute(update(bulk_operations).where(mine).values(**values))


def _audit(
    connection: Connection, action: str, row: Any, actor: str, now: datetime, request_id: UUID
) -> None:
    audit.append(
        connection, at=now, actor=actor, action=action, subject_kind=OPERATION,
        subject=str(row.id), detail={"done": row.done, "skipped": row.skipped},
        request_id=request_id,
    )  # fmt: skip
