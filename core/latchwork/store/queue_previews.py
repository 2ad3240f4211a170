"""Previews of what an operator does to queues, with who holds their slots. Takes no locks."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from latchwork.decisions.explanations import clock
from latchwork.decisions.states import JobState
from latchwork.queue_views import QueuePreview, SlotHolder
from latchwork.store.node_queries import read_nodes
from latchwork.store.queue_queries import COUNT_BOUND, bounded, count_due
from latchwork.store.schema import in_state, jobs, queues
from latchwork.views import BoundedCount

MAX_HOLDERS = 20
"""Jobs that are named as holders of a queue's slots."""


def preview_pause(connection: Connection, queue: str, *, now: datetime) -> QueuePreview:
    """What pausing ``queue`` would do now."""
    facts, gates = _facts(connection, queue, now), _read_gates(connection, queue)
    if gates is not None and gates.paused_at is not None:
        since = clock(gates.paused_at, now)
        return _refused(facts, f"It is paused already, by {gates.paused_by} since {since}.")
    reason = f"None of its jobs is claimed any more: {_jobs(facts.due)} due will wait"
    return replace(facts, reason=f"{reason}, {_jobs(facts.leased)} running will run on.")


def preview_resume(connection: Connection, queue: str, *, now: datetime) -> QueuePreview:
    """What resuming ``queue`` would do now."""
    facts, gates = _facts(connection, queue, now), _read_gates(connection, queue)
    if gates is None or gates.paused_at is None:
        return _refused(facts, "It is not paused.")
    limit = gates.concurrency_limit
    within = "" if limit is None else f", at most {limit:,} at a time"
    nobody = "" if facts.served_by else " No live node serves it."
    return replace(
        facts, reason=f"Its jobs are claimed again{within}: {_jobs(facts.due)} due.{nobody}"
    )


def preview_limit(
    connection: Connection, queue: str, limit: int | None, *, now: datetime
) -> QueuePreview:
    """What setting the limit of ``queue`` would do now; None is no limit."""
    facts, gates = _facts(connection, queue, now), _read_gates(connection, queue)
    if limit == (None if gates is None else gates.concurrency_limit):
        return _refused(facts, "It has no limit." if limit is None else f"It is {limit:,} already.")
    if limit is None:
        return replace(facts, reason="As many of its jobs run at once as its nodes have slots.")
    reason = f"At most {limit:,} of its jobs run at once, over all nodes; now {facts.leased}."
    if facts.leased.value > limit:
        reason += " Those above the limit run on; no other starts before they are fewer."
    return replace(facts, reason=reason)


def read_holders(connection: Connection, queue: str) -> list[SlotHolder]:
    """The running jobs of ``queue``, those whose lease ends first in front."""
    leased = (
        select(jobs.c.id, jobs.c.wire_name, jobs.c.owner)
        .where(in_state(JobState.LEASED), jobs.c.queue == queue)
        .order_by(jobs.c.lease_expires_at)
        .limit(COUNT_BOUND + 1)
    )
    return [SlotHolder(*row) for row in connection.execute(leased)]


def _facts(connection: Connection, queue: str, now: datetime) -> QueuePreview:
    holders = read_holders(connection, queue)
    serving = [one for one in read_nodes(connection, now=now) if one.live and queue in one.queues]
    return QueuePreview(
        queue=queue,
        allowed=True,
        reason="",
        due=count_due(connection, queue, now=now),
        leased=bounded(len(holders)),
        holders=tuple(holders[:MAX_HOLDERS]),
        served_by=tuple(one.worker_id for one in serving),
    )


def _refused(facts: QueuePreview, reason: str) -> QueuePreview:
    return replace(facts, allowed=False, reason=reason)


def _read_gates(connection: Connection, queue: str) -> Any:
    gates = select(queues.c.paused_at, queues.c.paused_by, queues.c.concurrency_limit)
    return connection.execute(gates.where(queues.c.name == queue)).one_or_none()


def _jobs(count: BoundedCount) -> str:
    return f"{count} job" if str(count) == "1" else f"{count} jobs"
