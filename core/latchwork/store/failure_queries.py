"""Reading the groups of failures: each looks up its own jobs, none counts them beyond a bound."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    exists,
    func,
    literal,
    literal_column,
    select,
    tuple_,
)

from latchwork.errors import InvalidValue
from latchwork.failure_views import TREND_HOURS, FailureGroup, FailurePage
from latchwork.store.column_types import EPOCH, UtcTime
from latchwork.store.counter_queries import period_start
from latchwork.store.failure_grouping import FAILED
from latchwork.store.job_rows import LIST_COLUMNS, job_view
from latchwork.store.queue_queries import COUNT_BOUND, bounded
from latchwork.store.schema import jobs
from latchwork.store.service_tables import failure_groups, failure_hours
from latchwork.views import BoundedCount, JobView

MAX_GROUPS = 50
"""Groups on one page: each may cost a count up to its bound."""

_MICROSECOND = timedelta(microseconds=1)
Place = tuple[datetime, str]


def list_groups(
    connection: Connection, before: str | None, *, limit: int, now: datetime
) -> FailurePage:
    """The groups that have jobs now, those that failed last first, after the place ``before``.

    Raises InvalidValue when ``before`` is no cursor.
    """
    limit = min(limit, MAX_GROUPS)
    mine = jobs.c.cause_group == failure_groups.c.key
    statement = _groups().where(exists().where(mine, jobs.c.cause_group.is_not(None), FAILED))
    if before is not None:
        at, key = _parse_cursor(before)
        place = tuple_(failure_groups.c.last_seen_at, failure_groups.c.key)
        statement = statement.where(place < tuple_(literal(at, UtcTime()), literal(key)))
    order = (failure_groups.c.last_seen_at.desc(), failure_groups.c.key.desc())
    rows = connection.execute(statement.order_by(*order).limit(limit + 1)).all()
    groups = _views(connection, rows[:limit], now)
    last = groups[-1] if len(rows) > limit else None
    return FailurePage(
        groups=groups,
        next=None if last is None else _cursor(last),
        ungrouped=_ungrouped(connection),
    )


def find_group(connection: Connection, key: str, *, now: datetime) -> FailureGroup | None:
    """The group of this key, also when its jobs are gone; None if it is not known."""
    rows = connection.execute(_groups().where(failure_groups.c.key == key)).all()
    groups = _views(connection, rows, now)
    return groups[0] if groups else None


def _groups() -> Any:
    """The groups' columns, with how many jobs each has up to the bound, and the newest of them."""
    of_group: Select[Any] = (
        select(literal_column("1").label("one"))
        .where(jobs.c.cause_group == failure_groups.c.key, FAILED)
        .correlate(failure_groups)
    )
    first_thousand = of_group.limit(COUNT_BOUND + 1).subquery("failed")
    newest = of_group.with_only_columns(jobs.c.sequence).order_by(jobs.c.sequence.desc()).limit(1)
    return select(
        failure_groups,
        select(func.count()).select_from(first_thousand).scalar_subquery().label("jobs"),
        newest.scalar_subquery().label("newest"),
    )


def _views(
    connection: Connection, rows: Collection[Any], now: datetime
) -> tuple[FailureGroup, ...]:
    samples = _samples(connection, [row.newest for row in rows if row.newest is not None])
    trends = _trends(connection, [row.key for row in rows], now)
    return tuple(
        FailureGroup(
            key=row.key,
            wire_name=row.wire_name,
            cause_code=row.cause_code,
            cause_type=row.cause_type,
            message=row.message,
            first_seen_at=row.first_seen_at,
            last_seen_at=row.last_seen_at,
            count=bounded(row.jobs),
            sample=samples.get(row.newest),
            hours=trends[row.key],
        )
        for row in rows
    )


def _samples(connection: Connection, sequences: Collection[int]) -> dict[int, JobView]:
    if not sequences:
        return {}
    rows = connection.execute(select(*LIST_COLUMNS).where(jobs.c.sequence.in_(sequences)))
    return {row.sequence: job_view(row) for row in rows}


def _trends(
    connection: Connection, keys: Collection[str], now: datetime
) -> defaultdict[str, tuple[int, ...]]:
    """Failures by the hour of each group, those of the running hour last."""
    first = period_start("hour", now) - timedelta(hours=TREND_HOURS - 1)
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * TREND_HOURS)
    hours = failure_hours.c
    statement = select(hours.key, hours.hour, hours["count"]).where(
        hours.key.in_(keys), hours.hour >= first
    )
    if keys:
        for key, hour, count in connection.execute(statement):
            place = (hour - first) // timedelta(hours=1)
            if place < TREND_HOURS:
                counts[key][place] = count
    nothing = (0,) * TREND_HOURS
    return defaultdict(lambda: nothing, {key: tuple(hours) for key, hours in counts.items()})


def _ungrouped(connection: Connection) -> BoundedCount:
    failed: ColumnElement[Any] = literal_column("1").label("one")
    some = select(failed).where(jobs.c.cause_group.is_(None), FAILED).limit(COUNT_BOUND + 1)
    number = connection.scalar(select(func.count()).select_from(some.subquery("ungrouped")))
    return bounded(number or 0)


def _cursor(group: FailureGroup) -> str:
    return f"{(group.last_seen_at - EPOCH) // _MICROSECOND}-{group.key}"


def _parse_cursor(text: str) -> Place:
    microseconds, dash, key = text.partition("-")
    if not (dash and microseconds.isascii() and microseconds.isdigit() and len(microseconds) < 17):
        raise InvalidValue("page", "is not a place in a listing")
    return EPOCH + int(microseconds) * _MICROSECOND, key
