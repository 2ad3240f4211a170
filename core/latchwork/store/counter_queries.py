"""Reading the counter ledger: exact counts, rates and run times, without touching the jobs.

Totals and periods hold what has been folded, entries what has not. Each figure is read in one
statement, so that no fold can move a row from one to the other between two readings.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    Connection,
    Subquery,
    Text,
    cast,
    func,
    select,
    type_coerce,
    union_all,
)

from latchwork.decisions.states import JobState
from latchwork.pace_views import DurationSummary, RatePoint
from latchwork.store.column_types import EPOCH
from latchwork.store.schema import counter_entries, counter_periods, counter_totals
from latchwork.views import Counts

Period = Literal["minute", "hour", "ever"]

PERIOD_LENGTH: dict[Period, timedelta] = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
}


def period_start(period: Period, at: datetime) -> datetime:
    """The start of the minute or hour that ``at`` is in; "ever" has one start for all time."""
    if period == "ever":
        return EPOCH
    start = at.replace(second=0, microsecond=0)
    return start.replace(minute=0) if period == "hour" else start


def read_counts(connection: Connection, *, now: datetime) -> Counts:
    """The exact number of stored jobs by state, and by queue and state."""
    entries = counter_entries.c
    arrived = select(entries.queue, entries.to_state.label("state"), entries.count)
    left = select(entries.queue, entries.from_state.label("state"), -entries.count)
    changes = union_all(
        select(counter_totals.c.queue, counter_totals.c.state, counter_totals.c.count),
        arrived.where(entries.to_state.is_not(None)),
        left.where(entries.from_state.is_not(None)),
    ).subquery("changes")
    # PostgreSQL adds 64-bit numbers up to a decimal.
    total = cast(func.sum(changes.c["count"]), BigInteger)
    by_queue: dict[str, dict[JobState, int]] = {}
    by_state = dict.fromkeys(JobState, 0)
    statement = select(changes.c.queue, changes.c.state, total).group_by(
        changes.c.queue, changes.c.state
    )
    for queue, state, count in connection.execute(statement):
        if count:
            by_queue.setdefault(queue, {})[state] = count
            by_state[state] += count
    return Counts(as_of=now, by_state=by_state, by_queue=by_queue)


def read_rates(
    connection: Connection,
    period: Period,
    *,
    since: datetime,
    until: datetime,
    wire_name: str | None = None,
    queue: str | None = None,
) -> tuple[RatePoint, ...]:
    """One point for every period from the one that holds ``since`` to the last before ``until``."""
    first = period_start(period, since)
    moved = _moves(period, first, until, wire_name, queue)
    sums: dict[datetime, Counter[str]] = {}
    for starts_at, source, target, count in _sums(connection, moved, "starts_at"):
        tally = sums.setdefault(period_start(period, starts_at), Counter())
        for kind in _kinds(source, target):
            tally[kind] += count
    length = PERIOD_LENGTH[period]
    steps = max(0, -((first - until) // length))
    return tuple(
        _rate_point(first + n * length, sums.get(first + n * length)) for n in range(steps)
    )


def read_queue_paces(
    connection: Connection, *, since: datetime, until: datetime
) -> dict[str, Counter[str]]:
    """How many jobs of each queue took each kind of step in the minutes of a stretch of time."""
    paces: dict[str, Counter[str]] = {}
    moved = _moves("minute", since, until, None, None)
    for queue, source, target, count in _sums(connection, moved, "queue"):
        tally = paces.setdefault(queue, Counter())
        for kind in _kinds(source, target):
            tally[kind] += count
    return paces


def read_durations(connection: Connection, wire_name: str, *, since: datetime) -> DurationSummary:
    """How long the attempts of a wire name ran that ended in the hours from ``since`` on."""
    moved = _moves("hour", since, None, wire_name, None)
    count, seconds = 0, 0.0
    buckets: Counter[int] = Counter()
    statement = select(moved.c["count"], moved.c.seconds, moved.c.buckets).where(
        moved.c.from_state == JobState.LEASED.value
    )
    for moves, spent, spread in connection.execute(statement):
        count += moves
        seconds += spent
        buckets.update({int(n): times for n, times in json.loads(spread).items()})
    if not count:
        return DurationSummary(0, None, None, None)
    return DurationSummary(
        count=count,
        mean_seconds=seconds / count,
        median_seconds=_quantile_seconds(buckets, 0.5),
        p95_seconds=_quantile_seconds(buckets, 0.95),
    )


def _moves(
    period: Period,
    since: datetime,
    until: datetime | None,
    wire_name: str | None,
    queue: str | None,
) -> Subquery:
    """Folded and unfolded moves; an unfolded one still carries its minute."""
    folded, entries = counter_periods.c, counter_entries.c
    kept = select(
        folded.starts_at, folded.queue, folded.from_state, folded.to_state,
        folded.count, folded.seconds, folded.buckets,
    ).where(folded.period == period, folded.starts_at >= since)  # fmt: skip
    fresh = select(
        entries.minute, entries.queue,
        func.coalesce(type_coerce(entries.from_state, Text), ""),
        func.coalesce(type_coerce(entries.to_state, Text), ""),
        entries.count, entries.seconds, entries.buckets,
    ).where(entries.minute >= since)  # fmt: skip
    if until is not None:
        kept, fresh = kept.where(folded.starts_at < until), fresh.where(entries.minute < until)
    if wire_name is not None:
        kept = kept.where(folded.wire_name == wire_name)
        fresh = fresh.where(entries.wire_name == wire_name)
    if queue is not None:
        kept, fresh = kept.where(folded.queue == queue), fresh.where(entries.queue == queue)
    return union_all(kept, fresh).subquery("moved")


def _sums(
    connection: Connection, moved: Subquery, key: str
) -> Iterator[tuple[Any, JobState | None, JobState | None, int]]:
    columns = (moved.c[key], moved.c.from_state, moved.c.to_state)
    total = cast(func.sum(moved.c["count"]), BigInteger)
    for value, source, target, count in connection.execute(
        select(*columns, total).group_by(*columns)
    ):
        yield value, _state(source), _state(target), count


def _state(word: str) -> JobState | None:
    return JobState(word) if word else None


def _kinds(source: JobState | None, target: JobState | None) -> Iterator[str]:
    """The figures of ``RatePoint`` that a passage counts towards."""
    if source is None:
        yield "enqueued"
    if target is JobState.LEASED:
        yield "started"
    if source is JobState.LEASED and target in (JobState.SCHEDULED, JobState.DEAD_LETTERED):
        yield "failed"
    if target is not None and target.terminal:
        yield target.value


def _rate_point(starts_at: datetime, tally: Counter[str] | None) -> RatePoint:
    counts = {kind: 0 if tally is None else tally[kind] for kind in _RATE_KINDS}
    return RatePoint(starts_at=starts_at, **counts)


_RATE_KINDS = tuple(field.name for field in fields(RatePoint) if field.name != "starts_at")


def _quantile_seconds(buckets: Counter[int], share: float) -> float:
    """The value below which ``share`` of the durations lie, were each bucket filled evenly."""
    wanted = share * buckets.total()
    passed = 0
    for exponent in sorted(buckets):
        inside = buckets[exponent]
        if passed + inside >= wanted:
            low, high = (0.0, 1.0) if exponent == 0 else (2.0 ** (exponent - 1), 2.0**exponent)
            return (low + (high - low) * (wanted - passed) / inside) / 1000
        passed += inside
    return 0.0
