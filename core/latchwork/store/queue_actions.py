"""What an operator does to queues: pause, resume, set a limit, each with its audit row.

Each holds its queue's lock alone (contract section 4): claims under way have committed before it
writes, and claims that come later see what it wrote.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, select

from latchwork.queue_views import QueueOutcome, QueueResult
from latchwork.store import audit
from latchwork.store.dialects import insert_ignoring, limit_lock_seconds, lock_name, notify_due
from latchwork.store.operator_actions import LOCK_SECONDS
from latchwork.store.queue_gates import lock_queue
from latchwork.store.schema import queues


class _Row(NamedTuple):
    """A queue's gates; those of a queue that nobody has named yet are open."""

    paused_at: datetime | None = None
    paused_by: str | None = None
    concurrency_limit: int | None = None


def pause(
    connection: Connection,
    queue: str,
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> QueueResult:
    """Let no job of ``queue`` be claimed any more; who paused it first is kept.

    ``request_id`` makes a repeat after a lost answer return the first answer.
    """
    row = _hold(connection, queue)
    if earlier := _earlier(connection, request_id, queue, row):
        return earlier
    if row.paused_at is not None:
        return _result(QueueOutcome.UNCHANGED, queue, row)
    row = row._replace(paused_at=now, paused_by=actor)
    _write(connection, queue, row, now)
    _audit(connection, "pause_queue", queue, actor, now, request_id, QueueOutcome.PAUSED)
    return _result(QueueOutcome.PAUSED, queue, row)


def resume(
    connection: Connection,
    queue: str,
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> QueueResult:
    """Let jobs of ``queue`` be claimed again, and hint its nodes to look."""
    row = _hold(connection, queue)
    if earlier := _earlier(connection, request_id, queue, row):
        return earlier
    if row.paused_at is None:
        return _result(QueueOutcome.UNCHANGED, queue, row)
    _audit(
        connection, "resume_queue", queue, actor, now, request_id, QueueOutcome.RESUMED,
        paused_by=row.paused_by,
    )  # fmt: skip
    row = row._replace(paused_at=None, paused_by=None)
    _write(connection, queue, row, now)
    notify_due(connection, [queue])
    return _result(QueueOutcome.RESUMED, queue, row)


def set_limit(
    connection: Connection,
    queue: str,
    limit: int | None,
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> QueueResult:
    """Let at most ``limit`` jobs of ``queue`` run at once, over all nodes; None lifts the limit.

    Jobs above a lowered limit run on.
    """
    row = _hold(connection, queue)
    if earlier := _earlier(connection, request_id, queue, row):
        return earlier
    if row.concurrency_limit == limit:
        return _result(QueueOutcome.UNCHANGED, queue, row)
    outcome = QueueOutcome.UNLIMITED if limit is None else QueueOutcome.LIMITED
    _audit(
        connection, "set_limit", queue, actor, now, request_id, outcome,
        limit=limit, before=row.concurrency_limit,
    )  # fmt: skip
    row = row._replace(concurrency_limit=limit)
    _write(connection, queue, row, now)
    notify_due(connection, [queue])
    return _result(outcome, queue, row)


def _hold(connection: Connection, queue: str) -> _Row:
    """Wait for the queue's lock, then read its gates."""
    limit_lock_seconds(connection, LOCK_SECONDS)
    lock_queue(connection, queue)
    columns = (queues.c[name] for name in _Row._fields)
    stored = connection.execute(select(*columns).where(queues.c.name == queue)).one_or_none()
    return _Row() if stored is None else _Row(*stored)


def _write(connection: Connection, queue: str, row: _Row, now: datetime) -> None:
    """Store the gates; a queue that is mentioned for the first time gets its row."""
    # The lock under which enqueues introduce a name: none of them waits for this insert.
    lock_name(connection, f"{queues.name} {queue}")
    values = row._asdict()
    connection.execute(
        insert_ignoring(connection.dialect.name, queues)
        .values(name=queue, created_at=now, **values)
        .on_conflict_do_update(index_elements=[queues.c.name], set_=values)
    )


def _earlier(
    connection: Connection, request_id: UUID | None, queue: str, row: _Row
) -> QueueResult | None:
    detail = audit.detail_of_request(connection, request_id)
    return None if detail is None else _result(QueueOutcome(detail["outcome"]), queue, row)


def _result(outcome: QueueOutcome, queue: str, row: _Row) -> QueueResult:
    return QueueResult(outcome, queue, *row)


def _audit(
    connection: Connection,
    action: str,
    queue: str,
    actor: str,
    now: datetime,
    request_id: UUID | None,
    outcome: QueueOutcome,
    **detail: object,
) -> None:
    audit.append(
        connection, at=now, actor=actor, action=action, subject_kind="queue", subject=queue,
        detail={"outcome": outcome.value, **detail}, request_id=request_id,
    )  # fmt: skip
