"""What an operator should look at, found without counting or scanning jobs."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from operator import itemgetter

from sqlalchemy import Connection, select

from latchwork.decisions.explanations import plural, span
from latchwork.decisions.states import JobState
from latchwork.store.counter_queries import read_counts
from latchwork.store.node_queries import MAX_RUNNING, read_nodes
from latchwork.store.observer_queries import read_observers
from latchwork.store.queue_queries import QueueRow, read_queues
from latchwork.store.schema import in_state, jobs
from latchwork.views import Attention, BoundedCount, NodeView

LATE_AFTER = timedelta(seconds=60)
"""A due job that is not claimed for this long is late."""

LAPSED_AFTER = timedelta(seconds=5)
"""A lapsed lease that no sweep took for this long: every live node sweeps each second."""

UNANSWERED_AFTER = timedelta(seconds=30)
"""A cancel that was delivered this long ago, and the handler has not returned."""

MAX_PER_KIND = 20

CAUSES_LOOKED_AT = 200
"""How many of the newest failed jobs the most frequent cause is told of."""


def read_attention(connection: Connection, *, now: datetime) -> tuple[Attention, ...]:
    """Everything that needs attention, most urgent first, at most 20 of each kind."""
    live = [node for node in read_nodes(connection, now=now) if node.live]
    rows = read_queues(connection, now=now)
    return (
        *_lapsed_leases(connection, now),
        *_queues_in_trouble(rows, live, now),
        *_unanswered_cancels(connection, now),
        *_failed(connection, now),
        *_observers_in_trouble(connection, now),
    )


def _lapsed_leases(connection: Connection, now: datetime) -> Iterator[Attention]:
    found = connection.execute(
        select(jobs.c.id, jobs.c.owner)
        .where(in_state(JobState.LEASED), jobs.c.lease_expires_at < now - LAPSED_AFTER)
        .order_by(jobs.c.lease_expires_at)
        .limit(MAX_RUNNING + 1)
    ).all()
    if found:
        number = BoundedCount(min(len(found), MAX_RUNNING), capped=len(found) > MAX_RUNNING)
        noun = "lease" if number.value == 1 else "leases"
        yield Attention(
            code="lapsed_leases",
            subject=f"{number} lapsed {noun}",
            sentence="No node has taken the work back: is any node running?",
            state=JobState.LEASED,
            job_id=found[0].id,
        )


def _queues_in_trouble(
    rows: list[QueueRow], live: list[NodeView], now: datetime
) -> Iterator[Attention]:
    late = [(row.oldest_due_at, row) for row in rows if row.oldest_due_at and not row.paused_at]
    late.sort(key=itemgetter(0))
    for oldest, row in late[:MAX_PER_KIND]:
        due = f"{row.due} due {'job' if str(row.due) == '1' else 'jobs'}"
        if not any(row.name in node.queues for node in live):
            yield Attention(
                code="queue_not_served",
                subject=f"Queue {row.name}",
                sentence=f"No live node serves it: {due}, the oldest for {span(now - oldest)}.",
                state=JobState.SCHEDULED,
                queue=row.name,
            )
        elif now - oldest > LATE_AFTER:
            yield Attention(
                code="queue_late",
                subject=f"Queue {row.name}",
                sentence=f"Its oldest due job has waited for {span(now - oldest)}: {due}.",
                state=JobState.SCHEDULED,
                queue=row.name,
            )


def _unanswered_cancels(connection: Connection, now: datetime) -> Iterator[Attention]:
    # The Leased jobs are as many as there are slots; their own small index bounds this.
    found = connection.execute(
        select(jobs.c.id, jobs.c.wire_name, jobs.c.owner, jobs.c.cancel_delivered_at)
        .where(
            in_state(JobState.LEASED),
            jobs.c.cancel_pending,
            jobs.c.cancel_delivered_at < now - UNANSWERED_AFTER,
        )
        .order_by(jobs.c.lease_expires_at)
        .limit(MAX_PER_KIND)
    )
    for job_id, wire_name, owner, delivered_at in found:
        yield Attention(
            code="cancel_unanswered",
            subject=wire_name,
            sentence=f"It was told to stop {span(now - delivered_at)} ago and has not returned; "
            f"it runs on {owner}.",
            state=JobState.LEASED,
            job_id=job_id,
        )


def _failed(connection: Connection, now: datetime) -> Iterator[Attention]:
    counts = read_counts(connection, now=now).by_state
    for state in (JobState.QUARANTINED, JobState.DEAD_LETTERED):
        count = counts[state]
        if count:
            yield Attention(
                code=state.value,
                subject=f"{plural(count, 'job')} {state.label}",
                sentence=f"{_usual_cause(connection, state)} {_mending(state, count)}".strip(),
                state=state,
            )


def _observers_in_trouble(connection: Connection, now: datetime) -> Iterator[Attention]:
    for one in read_observers(connection, now=now):
        if one.is_behind(now):
            served = "" if one.owner else " and no node serves it"
            yield Attention(
                code="observer_behind",
                subject=f"Observer {one.name}",
                sentence=f"It is {span(one.behind(now))} behind the log, {one.lag} rows{served}.",
                state=None,
                observer=one.name,
            )
        if one.dead.value:
            deliveries = "delivery" if str(one.dead) == "1" else "deliveries"
            yield Attention(
                code="dead_deliveries",
                subject=f"Observer {one.name}",
                sentence=f"{one.dead} dead {deliveries}: replay once the receiver is mended.",
                state=None,
                observer=one.name,
            )


def _usual_cause(connection: Connection, state: JobState) -> str:
    """The most frequent cause among the newest jobs of a failed state."""
    causes = connection.execute(
        select(jobs.c.wire_name, jobs.c.cause_code, jobs.c.cause_type)
        .where(in_state(state))
        .order_by(jobs.c.sequence.desc())
        .limit(CAUSES_LOOKED_AT)
    ).all()
    if not causes:  # they were purged or requeued a moment ago
        return ""
    ((wire_name, code, kind), count) = Counter(tuple(row) for row in causes).most_common(1)[0]
    words = kind.rpartition(".")[2] if kind else (code or "unknown").replace("_", " ")
    if count == len(causes):
        return f"{words} in {wire_name}."
    if count == 1:
        return ""
    return f"Most frequent: {words} in {wire_name}, {count} of the newest {len(causes)}."


def _mending(state: JobState, count: int) -> str:
    if state is JobState.DEAD_LETTERED:
        return "Requeue once the cause is mended."
    return f"Deploy a node that can run {'it' if count == 1 else 'them'}, then requeue."
