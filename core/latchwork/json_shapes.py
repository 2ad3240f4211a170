"""What the command line and the console say as JSON: one shape per thing, the same in both.

Times are RFC 3339 in UTC with a Z; states are their values (``dead_lettered``); a tag is a string,
or a key and a value.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from latchwork.views import (
    CauseView,
    Graph,
    JobDetail,
    JobPage,
    JobView,
    NodeView,
    QueueView,
    RelatedJob,
    TransitionView,
)

Shape = dict[str, Any]


def time_shape(moment: datetime | None) -> str | None:
    """A time to the microsecond, with a Z."""
    if moment is None:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def job_shape(job: JobView, *, sensitive: bool = True) -> Shape:
    """One job; without ``sensitive`` its cause has no text."""
    return {
        "id": str(job.id),
        "wire_name": job.wire_name,
        "queue": job.queue,
        "state": job.state.value,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "claim_number": job.claim_number,
        "enqueued_at": time_shape(job.enqueued_at),
        "due_at": time_shape(job.due_at),
        "owner": job.owner,
        "lease_expires_at": time_shape(job.lease_expires_at),
        "parents_remaining": job.parents_remaining,
        "cancel_pending": job.cancel_pending,
        "cancel_requested_at": time_shape(job.cancel_requested_at),
        "cancel_requested_by": job.cancel_requested_by,
        "cancel_delivered_at": time_shape(job.cancel_delivered_at),
        "terminal_at": time_shape(job.terminal_at),
        "cause": _cause_shape(job.cause, sensitive=sensitive),
        "tags": [tag if isinstance(tag, str) else list(tag) for tag in job.tags],
        "workflow_id": str(job.workflow_id) if job.workflow_id else None,
        "step": job.step,
    }


def detail_shape(detail: JobDetail, transitions: Iterable[TransitionView]) -> Shape:
    """One job with its payload, output, dependencies and history. The texts are JSON themselves."""
    return job_shape(detail.job) | {
        "payload": detail.payload,
        "output": detail.output,
        "parents": [_related_shape(one) for one in detail.parents],
        "children": [_related_shape(one) for one in detail.children],
        "more_children": detail.more_children,
        "transitions": [transition_shape(one) for one in transitions],
    }


def listing_shape(page: JobPage, *, sensitive: bool = True) -> Shape:
    """One page of a listing, with the cursors of its neighbours."""
    return {
        "jobs": [job_shape(job, sensitive=sensitive) for job in page.jobs],
        "next": page.next,
        "previous": page.previous,
    }


def transition_shape(transition: TransitionView, *, sensitive: bool = True) -> Shape:
    """One row of the transition log; without ``sensitive`` it has no failure detail."""
    previous = transition.previous_state
    return {
        "position": transition.position,
        "job_id": str(transition.job_id),
        "ordinal": transition.ordinal,
        "at": time_shape(transition.at),
        "state": transition.state.value,
        "previous_state": previous.value if previous else None,
        "event": transition.event.value,
        "attempt": transition.attempt,
        "queue": transition.queue,
        "wire_name": transition.wire_name,
        "worker": transition.worker,
        "due_at": time_shape(transition.due_at),
        "failure_detail": transition.failure_detail if sensitive else None,
    }


def graph_shape(graph: Graph) -> Shape:
    """The jobs connected to one job and the dependencies between them."""
    return {
        "focus": str(graph.focus),
        "nodes": [
            {
                "id": str(node.id),
                "wire_name": node.wire_name,
                "step": node.step,
                "queue": node.queue,
                "state": node.state.value,
                "attempt": node.attempt,
                "parents_remaining": node.parents_remaining,
                "mode": node.mode.value,
            }
            for node in graph.nodes
        ],
        "edges": [
            {"parent": str(edge.parent), "child": str(edge.child), "open": edge.open}
            for edge in graph.edges
        ],
        "truncated": graph.truncated,
    }


def queue_shape(queue: QueueView) -> Shape:
    """One queue: its depth by state, its gates and who serves it."""
    return {
        "name": queue.name,
        "counts": {state.value: count for state, count in queue.counts.items()},
        "due": queue.due.value,
        "due_is_capped": queue.due.capped,
        "oldest_due_at": time_shape(queue.oldest_due_at),
        "paused_at": time_shape(queue.paused_at),
        "paused_by": queue.paused_by,
        "concurrency_limit": queue.concurrency_limit,
        "served_by": list(queue.served_by),
        "enqueued_per_minute": queue.enqueued_per_minute,
        "outcomes_per_minute": queue.outcomes_per_minute,
    }


def node_shape(node: NodeView) -> Shape:
    """One worker node and the ids of the jobs it runs."""
    return {
        "worker_id": node.worker_id,
        "host": node.host,
        "pid": node.pid,
        "version": node.version,
        "live": node.live,
        "draining": node.draining,
        "started_at": time_shape(node.started_at),
        "last_seen_at": time_shape(node.last_seen_at),
        "stopped_at": time_shape(node.stopped_at),
        "slots": node.slots,
        "queues": list(node.queues),
        "wire_names": list(node.wire_names),
        "running": [str(job.id) for job in node.running],
    }


def _cause_shape(cause: CauseView | None, *, sensitive: bool) -> Shape | None:
    if cause is None:
        return None
    return {
        "code": cause.code,
        "type": cause.type,
        "text": cause.text if sensitive else None,
        "parent_id": str(cause.parent_id) if cause.parent_id else None,
        "parent_state": cause.parent_state.value if cause.parent_state else None,
        "root_id": str(cause.root_id) if cause.root_id else None,
    }


def _related_shape(related: RelatedJob) -> Shape:
    return {
        "id": str(related.id),
        "wire_name": related.wire_name,
        "step": related.step,
        "state": related.state.value,
        "open": related.open,
    }
