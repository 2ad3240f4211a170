"""Actions on queues, the audit trail and tags as JSON, the same on the shell and the console."""

from typing import Any

from latchwork.audit_views import AuditPage
from latchwork.json_shapes import time_shape
from latchwork.queue_views import QueuePreview, QueueResult
from latchwork.tag_views import TagFacet
from latchwork.views import AuditRow

Shape = dict[str, Any]


def audit_shape(row: AuditRow) -> Shape:
    """One operator action that was carried out."""
    return {
        "id": row.id,
        "at": time_shape(row.at),
        "actor": row.actor,
        "action": row.action,
        "subject_kind": row.subject_kind,
        "subject": row.subject,
        "detail": row.detail,
    }


def audit_page_shape(page: AuditPage) -> Shape:
    """One page of the audit trail and the places of its neighbours."""
    return {
        "audit": [audit_shape(row) for row in page.rows],
        "next": page.older,
        "previous": page.newer,
    }


def queue_result_shape(result: QueueResult) -> Shape:
    """What became of an action on a queue."""
    return {
        "queue": result.queue,
        "outcome": result.outcome.value,
        "paused_at": time_shape(result.paused_at),
        "paused_by": result.paused_by,
        "concurrency_limit": result.concurrency_limit,
    }


def queue_preview_shape(preview: QueuePreview) -> Shape:
    """What an action on a queue would do."""
    return {
        "allowed": preview.allowed,
        "reason": preview.reason,
        "due": preview.due.value,
        "due_is_capped": preview.due.capped,
        "leased": preview.leased.value,
        "leased_is_capped": preview.leased.capped,
        "holders": [
            {"id": str(one.id), "wire_name": one.wire_name, "owner": one.owner}
            for one in preview.holders
        ],
        "served_by": list(preview.served_by),
    }


def tag_shape(facet: TagFacet) -> Shape:
    """One tag in use and how many jobs have it."""
    return {
        "tag": facet.tag if isinstance(facet.tag, str) else list(facet.tag),
        "jobs": facet.jobs.value,
        "jobs_is_capped": facet.jobs.capped,
    }
