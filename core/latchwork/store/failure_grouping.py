"""Sorting failed jobs into groups of one cause, after their end and apart from it.

A sweep fills ``cause_group`` where it is empty: so ending a job costs nothing more, and jobs that
an older node ended are sorted too. The sweep alone writes the tables of groups, one at a time.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Connection, Text, delete, exists, or_, select, update

from latchwork.decisions.failure_groups import group_key, kind_message
from latchwork.decisions.states import JobState
from latchwork.store.counter_queries import period_start
from latchwork.store.dialects import BIG, BatchWrite, insert_ignoring, locking, try_lock
from latchwork.store.schema import in_state, jobs
from latchwork.store.service_tables import failure_groups, failure_hours

FAILED = or_(in_state(JobState.DEAD_LETTERED), in_state(JobState.QUARANTINED))
"""Spelled as the partial indexes of failed jobs spell it."""

HOURS_KEPT = timedelta(hours=48)
EMPTY_GROUP_KEPT = timedelta(days=2)
"""A group whose jobs are gone is remembered for this long: should it fail again, since when."""

MAX_GROUPS_DROPPED = 500

_LOCK = "failure grouping"


@dataclass(slots=True)
class _Seen:
    """What a sweep met of one group."""

    values: dict[str, Any]
    first: datetime
    last: datetime
    hours: Counter[datetime] = field(default_factory=Counter)


def any_ungrouped(connection: Connection) -> bool:
    """Whether a failed job is in no group yet; takes no locks."""
    return connection.scalar(_ungrouped(jobs.c.sequence).limit(1)) is not None


def group_failures(connection: Connection, *, limit: int) -> int:
    """Sort up to ``limit`` failed jobs into groups; how many it took.

    Rows that somebody has locked are left for the next sweep. 0 also when another node is sorting.
    """
    if not try_lock(connection, _LOCK):
        return 0
    names = ("sequence", "wire_name", "cause_code", "cause_type", "cause_text", "terminal_at")
    statement = _ungrouped(*(jobs.c[name] for name in names)).order_by(jobs.c.sequence).limit(limit)
    rows = connection.execute(locking(connection, statement, jobs, wait=False)).all()
    if not rows:
        return 0
    seen: dict[str, _Seen] = {}
    keys = [_note(seen, row) for row in rows]
    _write_groups(connection, seen)
    _write_hours(connection, seen)
    _mark_statement(connection.dialect.name).execute(
        connection, [[row.sequence for row in rows], keys]
    )
    return len(rows)


def forget_old(connection: Connection, *, now: datetime) -> None:
    """Drop hours beyond the trend, and groups that have had no job for a while."""
    if not try_lock(connection, _LOCK):
        return
    connection.execute(delete(failure_hours).where(failure_hours.c.hour < now - HOURS_KEPT))
    empty = (
        select(failure_groups.c.key)
        .where(
            failure_groups.c.last_seen_at < now - EMPTY_GROUP_KEPT,
            ~exists().where(jobs.c.cause_group == failure_groups.c.key, FAILED),
        )
        .order_by(failure_groups.c.last_seen_at)
        .limit(MAX_GROUPS_DROPPED)
    )
    connection.execute(delete(failure_groups).where(failure_groups.c.key.in_(empty)))


def _ungrouped(*columns: Any) -> Any:
    return select(*columns).where(jobs.c.cause_group.is_(None), FAILED)


def _note(seen: dict[str, _Seen], row: Any) -> str:
    """Add a failed job to what was seen of its group; returns the group's key."""
    code: str = row.cause_code or "unknown"
    message = kind_message(code, row.cause_text)
    key = group_key(row.wire_name, code, row.cause_type, message)
    at: datetime = row.terminal_at
    if key not in seen:
        values = {
            "key": key, "wire_name": row.wire_name, "cause_code": code,
            "cause_type": row.cause_type, "message": message,
        }  # fmt: skip
        seen[key] = _Seen(values, first=at, last=at)
    group = seen[key]
    group.first, group.last = min(group.first, at), max(group.last, at)
    group.hours[period_start("hour", at)] += 1
    return key


def _write_groups(connection: Connection, seen: dict[str, _Seen]) -> None:
    """Insert the groups, or widen what is stored of them: nobody else writes them meanwhile."""
    times = (failure_groups.c.first_seen_at, failure_groups.c.last_seen_at)
    for key, first, last in connection.execute(
        select(failure_groups.c.key, *times).where(failure_groups.c.key.in_(seen))
    ):
        seen[key].first = min(seen[key].first, first)
        seen[key].last = max(seen[key].last, last)
    _upsert(
        connection,
        failure_groups,
        ["key"],
        [
            one.values | {"first_seen_at": one.first, "last_seen_at": one.last}
            for one in seen.values()
        ],
        {"first_seen_at", "last_seen_at"},
    )


def _write_hours(connection: Connection, seen: dict[str, _Seen]) -> None:
    stored = _stored_hours(connection, seen)
    _upsert(
        connection,
        failure_hours,
        ["key", "hour"],
        [
            {"key": key, "hour": hour, "count": number + stored.get((key, hour), 0)}
            for key, one in seen.items()
            for hour, number in one.hours.items()
        ],
        {"count"},
    )


def _stored_hours(connection: Connection, keys: Collection[str]) -> dict[tuple[str, datetime], int]:
    hours = failure_hours.c
    statement = select(hours.key, hours.hour, hours["count"]).where(hours.key.in_(keys))
    return {(key, hour): number for key, hour, number in connection.execute(statement)}


def _upsert(
    connection: Connection,
    table: Any,
    key: list[str],
    rows: list[dict[str, Any]],
    changed: Iterable[str],
) -> None:
    insertion = insert_ignoring(connection.dialect.name, table)
    connection.execute(
        insertion.on_conflict_do_update(
            index_elements=[table.c[name] for name in key],
            set_={name: insertion.excluded[name] for name in changed},
        ),
        rows,
    )


@cache
def _mark_statement(dialect: str) -> BatchWrite:
    def build(row: Any) -> Any:
        mine = jobs.c.sequence == row.sequence
        return update(jobs).where(mine).values(cause_group=row.key)

    return BatchWrite(dialect, {"sequence": BIG, "key": Text()}, build)
