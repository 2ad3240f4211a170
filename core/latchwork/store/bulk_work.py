"""Working off an operation on many jobs, step by step: each step is one small transaction.

A step holds the operation's row, so no two of them run at once, and writes what became of its
members together with the moves themselves: whatever crashes, each member is acted on once. The
lease says who is at work, so that others do not crowd; when it lapses, another goes on.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Text, Uuid, delete, insert, or_, select, update

from latchwork.bulk_views import BULK_DONE, BulkAction
from latchwork.store import bulk_actions
from latchwork.store.bulk_queries import decode_filter
from latchwork.store.dialects import BIG, BatchWrite, locking
from latchwork.store.job_queries import find_members
from latchwork.store.service_tables import bulk_members, bulk_operations

LISTED_PER_STEP = 500
TRIED_PER_STEP = 100
LEASE = timedelta(seconds=15)
BUSY = "busy"
"""The outcome of a member whose row somebody else held for too long."""

OPERATIONS_KEPT = timedelta(days=14)
MEMBERS_DROPPED = 5_000


class Member(NamedTuple):
    """A member to act on."""

    number: int
    job_id: UUID


@dataclass(frozen=True, slots=True)
class Step:
    """What a step left: members whose rows somebody holds, to be tried again one by one."""

    operation_id: UUID
    busy: tuple[Member, ...] = ()


def anything_to_do(connection: Connection, worker: str, *, now: datetime) -> bool:
    """Whether an operation waits for a worker; takes no locks."""
    return (
        connection.scalar(_workable(worker, now).with_only_columns(bulk_operations.c.id))
        is not None
    )


def work_step(connection: Connection, worker: str, *, now: datetime) -> Step | None:
    """List or act on the next members of the oldest operation; None when there is nothing to do."""
    statement = locking(connection, _workable(worker, now), bulk_operations, wait=False)
    row = connection.execute(statement).one_or_none()
    if row is None:
        return None
    if row.total is None:
        _list_members(connection, row, worker, now)
        return Step(row.id)
    members = _untried(connection, row)
    outcomes = bulk_actions.act_on_free(
        connection, BulkAction(row.action), row.id, [m.job_id for m in members],
        actor=row.actor, now=now,
    )  # fmt: skip
    answered = {m.number: outcomes[m.job_id] for m in members if m.job_id in outcomes}
    _record(connection, row, answered, worker, now)
    return Step(row.id, tuple(m for m in members if m.job_id not in outcomes))


def try_member(
    connection: Connection, operation_id: UUID, member: Member, worker: str, *, now: datetime
) -> None:
    """Act on one member, waiting for its row; nothing when it was tried or stopped meanwhile."""
    row = _hold(connection, operation_id, member)
    if row is not None:
        outcome = bulk_actions.act_on_one(
            connection, BulkAction(row.action), operation_id, member.job_id,
            actor=row.actor, now=now,
        )  # fmt: skip
        _record(connection, row, {member.number: outcome}, worker, now)


def pass_over(
    connection: Connection, operation_id: UUID, member: Member, worker: str, *, now: datetime
) -> None:
    """Skip a member whose row nobody lets go of."""
    row = _hold(connection, operation_id, member)
    if row is not None:
        _record(connection, row, {member.number: BUSY}, worker, now)


def forget_old(connection: Connection, *, now: datetime) -> bool:
    """Drop a part of the oldest operation that ended long ago; whether there may be more."""
    oldest = (
        select(bulk_operations.c.id)
        .where(bulk_operations.c.finished_at < now - OPERATIONS_KEPT)
        .order_by(bulk_operations.c.finished_at)
        .limit(1)
    )
    operation_id = connection.scalar(oldest)
    if operation_id is None:
        return False
    mine = bulk_members.c.operation_id == operation_id
    first = select(bulk_members.c.number).where(mine).order_by(bulk_members.c.number)
    numbers = first.limit(MEMBERS_DROPPED).scalar_subquery()
    gone = connection.execute(delete(bulk_members).where(mine, bulk_members.c.number.in_(numbers)))
    if gone.rowcount < MEMBERS_DROPPED:
        connection.execute(delete(bulk_operations).where(bulk_operations.c.id == operation_id))
    return True


def _workable(worker: str, now: datetime) -> Any:
    """The oldest operation with something to do that nobody else is at."""
    operation = bulk_operations.c
    tried = operation.done + operation.skipped
    return (
        select(bulk_operations)
        .where(
            operation.finished_at.is_(None),
            or_(
                operation.owner.is_(None),
                operation.owner == worker,
                operation.lease_expires_at <= now,
            ),
            or_(
                operation.total.is_(None),
                (tried < operation.total)
                & or_(operation.allowed.is_(None), tried < operation.allowed),
            ),
        )
        .order_by(operation.created_at, operation.id)
        .limit(1)
    )


def _list_members(connection: Connection, row: Any, worker: str, now: datetime) -> None:
    """Store the next members: by falling enqueue number, so that none is met twice."""
    found = find_members(
        connection, decode_filter(row.criteria), before=row.listed_sequence, limit=LISTED_PER_STEP
    )
    mine = bulk_members.c.operation_id == row.id
    last = select(bulk_members.c.number).where(mine).order_by(bulk_members.c.number.desc())
    listed = connection.scalar(last.limit(1)) or 0
    if found.rows:
        connection.execute(
            insert(bulk_members),
            [
                {"operation_id": row.id, "number": listed + place, "job_id": job.id}
                for place, job in enumerate(found.rows, start=1)
            ],
        )
    total = listed + len(found.rows)
    if found.stopped_at is not None or found.more:
        reached = found.stopped_at or found.rows[-1].sequence
        _keep(connection, row.id, worker, now, listed_sequence=reached)
    elif total:
        _keep(connection, row.id, worker, now, total=total)
    else:
        _let_go(connection, row.id, total=0, finished_at=now)


def _untried(connection: Connection, row: Any) -> list[Member]:
    members = bulk_members.c
    statement = (
        select(members.number, members.job_id)
        .where(members.operation_id == row.id, members.outcome.is_(None))
        .order_by(members.number)
        .limit(TRIED_PER_STEP)
    )
    if row.allowed is not None:
        statement = statement.where(members.number <= row.allowed)
    return [Member(*found) for found in connection.execute(statement)]


def _hold(connection: Connection, operation_id: UUID, member: Member) -> Any:
    """The operation's row, held, if it still runs and this member was not tried; else None."""
    statement = select(bulk_operations).where(
        bulk_operations.c.id == operation_id, bulk_operations.c.finished_at.is_(None)
    )
    row = connection.execute(
        locking(connection, statement, bulk_operations, wait=True)
    ).one_or_none()
    if row is None:
        return None
    tried = connection.scalar(
        select(bulk_members.c.outcome.is_not(None)).where(
            bulk_members.c.operation_id == operation_id, bulk_members.c.number == member.number
        )
    )
    return None if tried else row


def _record(
    connection: Connection, row: Any, outcomes: Mapping[int, str], worker: str, now: datetime
) -> None:
    """Write what became of members, and where the operation is now; its row is held."""
    if outcomes:
        _outcome_statement(connection.dialect.name).execute(connection, _columns(row.id, outcomes))
    tally = Counter(outcomes.values())
    done = row.done + sum(count for word, count in tally.items() if word in BULK_DONE)
    skipped = row.skipped + sum(count for word, count in tally.items() if word not in BULK_DONE)
    counts = Counter(json.loads(row.outcomes)) + tally
    values = {"done": done, "skipped": skipped, "outcomes": json.dumps(counts)}
    tried = done + skipped
    if tried >= row.total:
        _let_go(connection, row.id, finished_at=now, **values)
    elif row.allowed is not None and tried >= row.allowed:
        _let_go(connection, row.id, **values)
    else:
        _keep(connection, row.id, worker, now, **values)


def _keep(
    connection: Connection, operation_id: UUID, worker: str, now: datetime, **values: Any
) -> None:
    lease = {"owner": worker, "lease_expires_at": now + LEASE}
    mine = bulk_operations.c.id == operation_id
    connection.execute(update(bulk_operations).where(mine).values(**lease, **values))


def _let_go(connection: Connection, operation_id: UUID, **values: Any) -> None:
    lease = {"owner": None, "lease_expires_at": None}
    mine = bulk_operations.c.id == operation_id
    connection.execute(update(bulk_operations).where(mine).values(**lease, **values))


def _columns(operation_id: UUID, outcomes: Mapping[int, str]) -> Sequence[Sequence[Any]]:
    return [[operation_id] * len(outcomes), list(outcomes), list(outcomes.values())]


@cache
def _outcome_statement(dialect: str) -> BatchWrite:
    def build(row: Any) -> Any:
        return (
            update(bulk_members)
            .where(
                bulk_members.c.operation_id == row.operation_id,
                bulk_members.c.number == row.number,
            )
            .values(outcome=row.outcome)
        )

    return BatchWrite(dialect, {"operation_id": Uuid(), "number": BIG, "outcome": Text()}, build)
