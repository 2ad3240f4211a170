"""Reading the queues: their gates and what is due in each, one index look-up per queue."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, literal_column, select

from latchwork.decisions.states import JobState
from latchwork.store.counter_queries import read_counts, read_queue_paces
from latchwork.store.node_queries import read_nodes
from latchwork.store.schema import in_state, jobs, queues, wire_names
from latchwork.views import BoundedCount, Facets, QueueView

COUNT_BOUND = 1_000
"""Where a count stops: shown as ``1,000+``."""

MAX_NAMES = 1_000

PACE_OVER = timedelta(minutes=5)
"""A queue's pace is that of its last whole minutes and the one that runs."""

_OUTCOMES = ("succeeded", "failed", "quarantined")


class QueueRow(NamedTuple):
    """One queue's gates and its due work."""

    name: str
    paused_at: datetime | None
    paused_by: str | None
    concurrency_limit: int | None
    oldest_due_at: datetime | None
    due: BoundedCount


def bounded(rows: int) -> BoundedCount:
    """The count of a statement that stopped one row after ``COUNT_BOUND``."""
    return BoundedCount(min(rows, COUNT_BOUND), capped=rows > COUNT_BOUND)


def read_queues(connection: Connection, *, now: datetime) -> list[QueueRow]:
    """Every queue, with what is due at ``now``: its oldest due time and a bounded count."""
    due = _due(now).correlate(queues)
    oldest = due.with_only_columns(jobs.c.due_at).order_by(jobs.c.due_at).limit(1)
    first_thousand = due.with_only_columns(literal_column("1").label("one")).limit(COUNT_BOUND + 1)
    number = select(func.count()).select_from(first_thousand.subquery("due"))
    statement = (
        select(
            queues.c.name, queues.c.paused_at, queues.c.paused_by, queues.c.concurrency_limit,
            oldest.scalar_subquery(), number.scalar_subquery(),
        )
        .order_by(queues.c.name)
        .limit(MAX_NAMES)
    )  # fmt: skip
    return [QueueRow(*row[:-1], bounded(row[-1])) for row in connection.execute(statement)]


def count_due(connection: Connection, queue: str, *, now: datetime) -> BoundedCount:
    """How many jobs of one queue are due at ``now``, up to the bound."""
    due = _due(now).where(queues.c.name == queue).limit(COUNT_BOUND + 1)
    return bounded(len(connection.scalars(due).all()))


def read_queue_views(connection: Connection, *, now: datetime) -> tuple[QueueView, ...]:
    """Every queue with its depth, its pace of late and the live nodes that serve it."""
    counts = read_counts(connection, now=now).by_queue
    started = now.replace(second=0, microsecond=0) - PACE_OVER
    minutes = (now - started) / timedelta(minutes=1)
    paces = read_queue_paces(connection, since=started, until=now)
    live = [node for node in read_nodes(connection, now=now) if node.live]
    views = []
    for row in read_queues(connection, now=now):
        pace = paces.get(row.name, Counter())
        views.append(
            QueueView(
                name=row.name,
                counts=dict.fromkeys(JobState, 0) | counts.get(row.name, {}),
                due=row.due,
                oldest_due_at=row.oldest_due_at,
                paused_at=row.paused_at,
                paused_by=row.paused_by,
                concurrency_limit=row.concurrency_limit,
                served_by=tuple(node.worker_id for node in live if row.name in node.queues),
                outcomes_per_minute=sum(pace[kind] for kind in _OUTCOMES) / minutes,
                enqueued_per_minute=pace["enqueued"] / minutes,
            )
        )
    return tuple(views)


def _due(now: datetime) -> Any:
    return select(jobs.c.sequence).where(
        jobs.c.queue == queues.c.name, in_state(JobState.SCHEDULED), jobs.c.due_at <= now
    )


def read_facets(connection: Connection) -> Facets:
    """The names of queues and wire names ever enqueued to."""
    names = [
        connection.scalars(select(table.c.name).order_by(table.c.name).limit(MAX_NAMES)).all()
        for table in (queues, wire_names)
    ]
    return Facets(queues=tuple(names[0]), wire_names=tuple(names[1]))
