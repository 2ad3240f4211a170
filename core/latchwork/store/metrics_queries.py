"""Figures for a metrics endpoint: from the counter ledger, and a few look-ups in small indexes."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Text, func, literal_column, select, type_coerce, union_all

from latchwork.decisions.states import JobState
from latchwork.metrics_views import OTHER, AttemptTimes, Figures, Passages
from latchwork.store.counter_queries import read_counts
from latchwork.store.node_queries import read_nodes
from latchwork.store.queue_queries import COUNT_BOUND, read_queues
from latchwork.store.schema import (
    counter_entries,
    counter_periods,
    in_state,
    jobs,
    queues,
    wire_names,
)

MAX_NAMES = 200
"""Names with figures of their own: those introduced first, so that they stay the same."""


@dataclass(slots=True)
class _Times:
    count: int = 0
    seconds: float = 0.0
    buckets: Counter[int] = field(default_factory=Counter)


def read_figures(connection: Connection, *, now: datetime) -> Figures:
    """Everything a metrics endpoint tells."""
    first_queues = _first_names(connection, queues)
    live = [node for node in read_nodes(connection, now=now) if node.live]
    passages, attempts = _read_passages(connection, _first_names(connection, wire_names))
    return Figures(
        as_of=now,
        jobs=_jobs(connection, first_queues, now),
        passages=passages,
        attempts=attempts,
        oldest_due_at=_oldest_due(connection, first_queues, now),
        lapsed_leases=_lapsed(connection, now),
        live_nodes=len(live),
        live_slots=sum(node.slots for node in live),
    )


def _first_names(connection: Connection, table: Any) -> frozenset[str]:
    order = (table.c.created_at, table.c.name)
    return frozenset(connection.scalars(select(table.c.name).order_by(*order).limit(MAX_NAMES)))


def _named(name: str, own: Collection[str]) -> str:
    return name if name in own else OTHER


def _jobs(
    connection: Connection, own: Collection[str], now: datetime
) -> dict[str, dict[JobState, int]]:
    """Jobs by queue and state; every named queue has all states, so that no series disappears."""
    counted = {name: dict.fromkeys(JobState, 0) for name in sorted(own)}
    for queue, states in read_counts(connection, now=now).by_queue.items():
        figures = counted.setdefault(_named(queue, own), dict.fromkeys(JobState, 0))
        for state, count in states.items():
            figures[state] += count
    return counted


def _read_passages(
    connection: Connection, own: Collection[str]
) -> tuple[tuple[Passages, ...], tuple[AttemptTimes, ...]]:
    counts: Counter[tuple[str, str, str]] = Counter()
    times: defaultdict[str, _Times] = defaultdict(_Times)
    for wire_name, source, target, count, seconds, buckets in connection.execute(_lifetime()):
        name = _named(wire_name, own)
        counts[name, source, target] += count
        if source == JobState.LEASED.value:
            total = times[name]
            total.count += count
            total.seconds += seconds
            total.buckets.update({int(n): times for n, times in json.loads(buckets).items()})
    passages = tuple(
        Passages(name, _state(source), _state(target), count)
        for (name, source, target), count in sorted(counts.items())
    )
    attempts = tuple(
        AttemptTimes(name, one.count, one.seconds, dict(one.buckets))
        for name, one in sorted(times.items())
    )
    return passages, attempts


def _lifetime() -> Any:
    """Every passage there ever was: what is folded, and what is not folded yet."""
    folded, entries = counter_periods.c, counter_entries.c
    kept = select(
        folded.wire_name, folded.from_state, folded.to_state,
        folded.count, folded.seconds, folded.buckets,
    ).where(folded.period == "ever")  # fmt: skip
    fresh = select(
        entries.wire_name,
        func.coalesce(type_coerce(entries.from_state, Text), ""),
        func.coalesce(type_coerce(entries.to_state, Text), ""),
        entries.count, entries.seconds, entries.buckets,
    )  # fmt: skip
    return union_all(kept, fresh)


def _state(word: str) -> JobState | None:
    return JobState(word) if word else None


def _oldest_due(connection: Connection, own: Collection[str], now: datetime) -> dict[str, datetime]:
    oldest: dict[str, datetime] = {}
    for row in read_queues(connection, now=now):
        if row.oldest_due_at is not None:
            name = _named(row.name, own)
            oldest[name] = min(row.oldest_due_at, oldest.get(name, row.oldest_due_at))
    return oldest


def _lapsed(connection: Connection, now: datetime) -> int:
    lapsed = (
        select(literal_column("1").label("one"))
        .where(in_state(JobState.LEASED), jobs.c.lease_expires_at <= now)
        .limit(COUNT_BOUND)
        .subquery("lapsed")
    )
    return connection.scalar(select(func.count()).select_from(lapsed)) or 0
