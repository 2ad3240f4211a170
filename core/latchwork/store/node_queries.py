"""Reading the nodes: who is alive, what each serves and what each executes."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select

from latchwork.decisions.states import JobState
from latchwork.store.job_rows import LIST_COLUMNS, job_view
from latchwork.store.schema import in_state, jobs, nodes
from latchwork.views import JobView, NodeView

MAX_NODES = 200
MAX_RUNNING = 1_000
"""Running jobs that the nodes' page lists in all."""

HEARTBEATS_UNTIL_GONE = 3
"""A node that missed this many heartbeats is not counted on any more; its leases lapse then too."""

SHOWN_AFTER_END = timedelta(hours=24)


def read_nodes(connection: Connection, *, now: datetime) -> tuple[NodeView, ...]:
    """Nodes seen in the last day, live ones first, without what they execute."""
    recent = (
        select(nodes)
        .where(nodes.c.last_seen_at >= now - SHOWN_AFTER_END)
        .order_by(nodes.c.last_seen_at.desc())
        .limit(MAX_NODES)
    )
    views = [_node_view(row, now) for row in connection.execute(recent)]
    return tuple(sorted(views, key=lambda node: (not node.live, node.worker_id)))


def read_nodes_and_jobs(connection: Connection, *, now: datetime) -> tuple[NodeView, ...]:
    """The same nodes with the jobs whose leases they hold."""
    running = read_running(connection)
    return tuple(
        replace(node, running=tuple(running.get(node.worker_id, ())))
        for node in read_nodes(connection, now=now)
    )


def read_running(connection: Connection) -> dict[str, list[JobView]]:
    """The Leased jobs by owner, those whose lease ends first in front."""
    leased = (
        select(*LIST_COLUMNS)
        .where(in_state(JobState.LEASED))
        .order_by(jobs.c.lease_expires_at)
        .limit(MAX_RUNNING)
    )
    running: dict[str, list[JobView]] = {}
    for row in connection.execute(leased):
        running.setdefault(row.owner, []).append(job_view(row))
    return running


def _node_view(row: Any, now: datetime) -> NodeView:
    patience = timedelta(seconds=row.heartbeat_seconds * HEARTBEATS_UNTIL_GONE)
    return NodeView(
        worker_id=row.worker_id,
        host=row.host,
        pid=row.pid,
        version=row.version,
        started_at=row.started_at,
        last_seen_at=row.last_seen_at,
        heartbeat_seconds=row.heartbeat_seconds,
        slots=row.slots,
        queues=tuple(json.loads(row.queues)),
        wire_names=tuple(json.loads(row.wire_names)),
        draining=row.draining,
        stopped_at=row.stopped_at,
        live=row.stopped_at is None and now - row.last_seen_at <= patience,
    )
