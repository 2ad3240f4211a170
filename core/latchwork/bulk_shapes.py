"""Groups of failures and operations on many jobs as JSON: the same on every way out."""

from latchwork.bulk_views import BulkMember, BulkOperation
from latchwork.failure_views import FailureGroup
from latchwork.json_shapes import Shape, job_shape, time_shape
from latchwork.views import JobFilter


def group_shape(group: FailureGroup, *, sensitive: bool = True) -> Shape:
    """One group of failures; without ``sensitive`` it has no message."""
    sample = group.sample
    return {
        "key": group.key,
        "wire_name": group.wire_name,
        "cause_code": group.cause_code,
        "cause_type": group.cause_type,
        "message": group.message if sensitive else None,
        "first_seen_at": time_shape(group.first_seen_at),
        "last_seen_at": time_shape(group.last_seen_at),
        "count": group.count.value,
        "count_is_capped": group.count.capped,
        "hours": list(group.hours),
        "sample": None if sample is None else job_shape(sample, sensitive=sensitive),
    }


def operation_shape(operation: BulkOperation) -> Shape:
    """One operation on many jobs and how far it is."""
    return {
        "id": str(operation.id),
        "action": operation.action.value,
        "state": operation.state.value,
        "actor": operation.actor,
        "filter": filter_shape(operation.job_filter),
        "created_at": time_shape(operation.created_at),
        "finished_at": time_shape(operation.finished_at),
        "stopped_by": operation.stopped_by,
        "listed": operation.listed,
        "total": operation.total,
        "done": operation.done,
        "skipped": operation.skipped,
        "outcomes": operation.outcomes,
        "allowed": operation.allowed,
        "worker": operation.worker,
    }


def member_shape(member: BulkMember) -> Shape:
    """One member of an operation: what was answered, and where its job is now."""
    return {
        "number": member.number,
        "job_id": str(member.job_id),
        "outcome": member.outcome,
        "state": member.job.state.value if member.job else None,
    }


def filter_shape(job_filter: JobFilter) -> Shape:
    """The filter that found an operation's members."""
    tag = job_filter.tag
    return {
        "states": [state.value for state in job_filter.states],
        "queue": job_filter.queue,
        "wire_name": job_filter.wire_name,
        "tag": list(tag) if isinstance(tag, tuple) else tag,
        "cause_code": job_filter.cause_code,
        "cause_type": job_filter.cause_type,
        "cause_group": job_filter.cause_group,
    }
