"""Folding the counter ledger: many small entries become few totals, in one transaction.

Totals per queue and state answer "how many now"; minutes (kept 2 hours) and hours (kept 8 days) per
wire name answer "how many then", and "ever" how many in all, for counters that only rise. Readers
add what is not folded yet, so a fold changes no figure.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, select

from latchwork.decisions.states import JobState
from latchwork.store import names
from latchwork.store.counter_queries import Period, period_start
from latchwork.store.dialects import insert_ignoring, try_lock
from latchwork.store.schema import (
    counter_entries,
    counter_periods,
    counter_totals,
    queues,
    wire_names,
)

MAX_ENTRIES = 5_000
"""Entries that one fold takes: it stays a short transaction however far behind it is."""

KEPT: dict[Period, timedelta] = {"minute": timedelta(hours=2), "hour": timedelta(days=8)}

_LOCK = "counter folding"
_MEASURES = ("seconds", "buckets")
# A row is a tuple, whose own "count" would hide the column's.
_ENTRY_COLUMNS = (
    *(
        counter_entries.c[name]
        for name in ("minute", "queue", "wire_name", "from_state", "to_state", "buckets")
    ),
    counter_entries.c["count"].label("moves"),
    counter_entries.c.seconds,
)


class PeriodKey(NamedTuple):
    """The primary key of a row of periods."""

    period: Period
    starts_at: datetime
    wire_name: str
    queue: str
    from_state: str
    to_state: str


_PERIOD_COLUMNS = (
    *(counter_periods.c[name] for name in PeriodKey._fields),
    counter_periods.c["count"].label("moves"),
    *(counter_periods.c[name] for name in _MEASURES),
)


class _Alike(NamedTuple):
    """Entries that say the same but for how many moves and seconds, which are their sums."""

    minute: datetime
    queue: str
    wire_name: str
    from_state: JobState | None
    to_state: JobState | None
    buckets: str
    moves: int
    seconds: float
    entries: int


@dataclass(slots=True)
class _Sum:
    count: int = 0
    seconds: float = 0.0
    buckets: Counter[str] = field(default_factory=Counter)

    def add(self, row: Any, entries: int = 1) -> None:
        """Add entries that are alike, or what a period holds already."""
        self.count += row.moves
        self.seconds += row.seconds
        for bucket, moves in json.loads(row.buckets).items():
            self.buckets[bucket] += moves * entries


def fold(connection: Connection, *, now: datetime) -> int:
    """Fold the oldest entries and drop the periods that are over; how many entries it took.

    ``MAX_ENTRIES`` means that there may be more. 0 also when another node is folding just now.
    """
    if not try_lock(connection, _LOCK):
        return 0
    oldest = select(counter_entries.c.id).order_by(counter_entries.c.id).limit(MAX_ENTRIES)
    taken = connection.execute(
        delete(counter_entries)
        .where(counter_entries.c.id.in_(oldest.scalar_subquery()))
        .returning(*_ENTRY_COLUMNS)
    ).all()
    if taken:
        entries = _gather(taken)
        _add_to_totals(connection, entries)
        _add_to_periods(connection, entries, now)
        # A name whose first transaction was rolled back under another's eyes gets its row here.
        used = {
            queues: [entry.queue for entry in entries],
            wire_names: [entry.wire_name for entry in entries],
        }
        names.introduce(connection, used, now)
    for period, length in KEPT.items():
        connection.execute(
            delete(counter_periods).where(
                counter_periods.c.period == period, counter_periods.c.starts_at < now - length
            )
        )
    return len(taken)


def _gather(taken: Iterable[Any]) -> list[_Alike]:
    """Put entries together that are alike.

    The rest of the fold takes a hundred times as long for each: handlers would feel it.
    """
    sums: dict[tuple[Any, ...], list[Any]] = {}
    for *key, moves, seconds in taken:
        figures = sums.setdefault(tuple(key), [0, 0.0, 0])
        figures[0] += moves
        figures[1] += seconds
        figures[2] += 1
    return [_Alike(*key, *figures) for key, figures in sums.items()]


def _add_to_totals(connection: Connection, entries: Iterable[_Alike]) -> None:
    changes: Counter[tuple[str, JobState]] = Counter()
    for entry in entries:
        if entry.to_state is not None:
            changes[entry.queue, entry.to_state] += entry.moves
        if entry.from_state is not None:
            changes[entry.queue, entry.from_state] -= entry.moves
    insertion = insert_ignoring(connection.dialect.name, counter_totals)
    connection.execute(
        insertion.on_conflict_do_update(
            index_elements=[counter_totals.c.queue, counter_totals.c.state],
            set_={"count": counter_totals.c.count + insertion.excluded.count},
        ),
        [
            {"queue": queue, "state": state, "count": count}
            for (queue, state), count in changes.items()
        ],
    )


def _add_to_periods(connection: Connection, entries: Iterable[_Alike], now: datetime) -> None:
    sums: dict[PeriodKey, _Sum] = {}
    for entry in entries:
        for period, starts_at in _periods(entry.minute, now):
            key = PeriodKey(
                period, starts_at, entry.wire_name, entry.queue,
                entry.from_state or "", entry.to_state or "",
            )  # fmt: skip
            sums.setdefault(key, _Sum()).add(entry, entry.entries)
    if not sums:
        return
    _add_what_is_there(connection, sums)
    insertion = insert_ignoring(connection.dialect.name, counter_periods)
    changed = ("count", "seconds", "buckets")
    connection.execute(
        insertion.on_conflict_do_update(
            index_elements=list(counter_periods.primary_key.columns),
            set_={name: insertion.excluded[name] for name in changed},
        ),
        [
            key._asdict()
            | {
                "count": total.count,
                "seconds": total.seconds,
                "buckets": json.dumps(total.buckets, separators=(",", ":")),
            }
            for key, total in sums.items()
        ],
    )


def _periods(minute: datetime, now: datetime) -> Iterator[tuple[Period, datetime]]:
    """The periods that a minute's moves still count towards."""
    for period, length in KEPT.items():
        starts_at = period_start(period, minute)
        if starts_at >= now - length:
            yield period, starts_at
    yield "ever", period_start("ever", minute)


def _add_what_is_there(connection: Connection, sums: Mapping[PeriodKey, _Sum]) -> None:
    """Add the stored figures of the same periods: only one folder runs, so they stand still."""
    names_met = {key.wire_name for key in sums}
    for period in {key.period for key in sums}:
        starts = {key.starts_at for key in sums if key.period == period}
        stored = connection.execute(
            select(*_PERIOD_COLUMNS).where(
                counter_periods.c.period == period,
                counter_periods.c.starts_at.in_(starts),
                counter_periods.c.wire_name.in_(names_met),
            )
        )
        for row in stored:
            total = sums.get(PeriodKey(*row[: len(PeriodKey._fields)]))
            if total is not None:
                total.add(row)
