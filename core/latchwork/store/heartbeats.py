"""Heartbeats: a worker renews its leases and learns what was lost and what should stop.

A heartbeat never waits for a row: a job that somebody else has locked is answered BUSY and is tried
again by the caller until its lease ends (contract section 4).
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Integer, case, func, insert, select, update

from latchwork.decisions.leases import Hold
from latchwork.decisions.states import JobState
from latchwork.store.column_types import UtcTime
from latchwork.store.dialects import BIG, BatchWrite, array, in_array, locking
from latchwork.store.outcomes import stored
from latchwork.store.schema import jobs, nodes


class RenewalStatus(StrEnum):
    """What became of one lease at a heartbeat."""

    RENEWED = "renewed"
    LOST = "lost"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Renewal:
    """The answer for one hold; ``cancel_requested`` carries the operator's flag to the handler."""

    hold: Hold
    status: RenewalStatus
    cancel_requested: bool = False


class NodeRecord(NamedTuple):
    """A worker node as it introduces itself."""

    worker_id: str
    host: str
    pid: int
    version: str
    started_at: datetime
    heartbeat_seconds: float
    slots: int
    queues: tuple[str, ...]
    wire_names: tuple[str, ...]


_LEASE_COLUMNS = (
    jobs.c.sequence, jobs.c.state, jobs.c.owner, jobs.c.attempt, jobs.c.claim_number,
    jobs.c.lease_expires_at, jobs.c.cancel_pending,
)  # fmt: skip


@cache
def _read_statement(dialect: str) -> Any:
    found = in_array(dialect, jobs.c.sequence, "sequences", BIG)
    return select(*_LEASE_COLUMNS).where(found).order_by(jobs.c.sequence)


@cache
def _renew_statement(dialect: str) -> BatchWrite:
    def build(row: Any) -> Any:
        delivered = case(
            (jobs.c.cancel_pending, func.coalesce(jobs.c.cancel_delivered_at, row.delivered_at)),
            else_=jobs.c.cancel_delivered_at,
        )
        return (
            update(jobs)
            .where(jobs.c.sequence == row.sequence, jobs.c.claim_number == row.claim_number)
            .values(lease_expires_at=row.expires_at, cancel_delivered_at=delivered)
        )

    columns: dict[str, Any] = {
        "sequence": BIG, "claim_number": Integer(),
        "expires_at": UtcTime(), "delivered_at": UtcTime(),
    }  # fmt: skip
    return BatchWrite(dialect, columns, build)


def renew(
    connection: Connection,
    worker_id: str,
    holds: Sequence[Hold],
    *,
    lease_seconds: float,
    now: datetime,
) -> list[Renewal]:
    """Renew the leases of ``holds`` whose expiry is still after ``now``; answers in input order."""
    if not holds:
        return []
    sequences = {hold.sequence for hold in holds}
    rows = _lock_free_rows(connection, sequences)
    locked_elsewhere = stored(connection, sequences - rows.keys())
    answers = []
    for hold in holds:
        row = rows.get(hold.sequence)
        if row is None:
            busy = hold.sequence in locked_elsewhere
            answers.append(Renewal(hold, RenewalStatus.BUSY if busy else RenewalStatus.LOST))
        elif _holds(row, worker_id, hold) and row.lease_expires_at > now:
            answers.append(Renewal(hold, RenewalStatus.RENEWED, row.cancel_pending))
        else:
            answers.append(Renewal(hold, RenewalStatus.LOST))
    renewed = [answer.hold for answer in answers if answer.status is RenewalStatus.RENEWED]
    _extend(connection, renewed, now + timedelta(seconds=lease_seconds), now)
    return answers


def release(
    connection: Connection, worker_id: str, holds: Sequence[Hold], *, now: datetime
) -> None:
    """Let go of leases at shutdown: they expire now, so that the sweep takes them at once."""
    rows = _lock_free_rows(connection, {hold.sequence for hold in holds})
    mine = [
        hold
        for hold in holds
        if hold.sequence in rows
        and _holds(rows[hold.sequence], worker_id, hold)
        and rows[hold.sequence].lease_expires_at > now
    ]
    _extend(connection, mine, now, None)


def _lock_free_rows(connection: Connection, sequences: Collection[int]) -> dict[int, Any]:
    statement = _read_statement(connection.dialect.name)
    statement = locking(connection, statement, jobs, wait=False)
    found = connection.execute(statement, {"sequences": array(connection, sequences, BIG)})
    return {row.sequence: row for row in found}


def _holds(row: Any, worker_id: str, hold: Hold) -> bool:
    return (
        row.state is JobState.LEASED
        and row.owner == worker_id
        and row.attempt == hold.attempt
        and row.claim_number == hold.claim_number
    )


def _extend(
    connection: Connection,
    holds: Sequence[Hold],
    expires_at: datetime,
    delivered_at: datetime | None,
) -> None:
    if not holds:
        return
    count = len(holds)
    values: list[list[Any]] = [[hold.sequence for hold in holds]]
    values.append([hold.claim_number for hold in holds])
    values = [*values, [expires_at] * count, [delivered_at] * count]
    _renew_statement(connection.dialect.name).execute(connection, values)


def register_node(connection: Connection, record: NodeRecord) -> None:
    """Write down a node that has started."""
    connection.execute(
        insert(nodes),
        record._asdict()
        | {
            "last_seen_at": record.started_at,
            "queues": json.dumps(record.queues),
            "wire_names": json.dumps(record.wire_names),
        },
    )


def node_seen(connection: Connection, worker_id: str, *, now: datetime, draining: bool) -> None:
    """Note that a node is alive."""
    known = update(nodes).where(nodes.c.worker_id == worker_id)
    connection.execute(known.values(last_seen_at=now, draining=draining))


def node_stopped(connection: Connection, worker_id: str, *, now: datetime) -> None:
    """Note that a node has stopped of its own accord."""
    known = update(nodes).where(nodes.c.worker_id == worker_id)
    connection.execute(known.values(last_seen_at=now, stopped_at=now))
