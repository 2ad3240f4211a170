"""What the page of one job shows, read once for the page, its live regions and its JSON."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from latchwork.schedule_views import Tick
from latchwork.views import ActionPreview, AuditRow, Explanation, History, JobDetail, JobView
from latchwork_console.console import Console, Permission
from latchwork_console.graph_drawing import DrawnGraph, draw
from latchwork_console.json_text import indented
from latchwork_console.timeline_drawing import Attempt, Timeline, attempts_of, draw_timeline

SMALL_GRAPH_JOBS_MAX = 200
FOLDED_OVER_BYTES = 2_048


@dataclass(frozen=True, slots=True)
class StoredText:
    """A payload or an output, exactly as stored; ``lines`` is the same text over lines, if any."""

    text: str
    lines: str | None

    @property
    def size_bytes(self) -> int:
        """Its size in the database."""
        return len(self.text.encode())

    @property
    def large(self) -> bool:
        """Whether it is folded away until it is asked for."""
        return self.size_bytes > FOLDED_OVER_BYTES


@dataclass(frozen=True, slots=True)
class Action:
    """Something an operator may do to the job, with what it would do."""

    label: str
    route: str
    preview: ActionPreview
    permitted: bool
    primary: bool


@dataclass(frozen=True, slots=True)
class JobRegions:
    """The parts of a job's page that change while it lives."""

    job: JobView
    detail: JobDetail
    explanation: Explanation
    timeline: Timeline | None
    attempts: tuple[Attempt, ...]
    history: History
    log_off_since: datetime | None
    actions: tuple[Action, ...]
    drawn: DrawnGraph
    audit: tuple[AuditRow, ...]
    tick: Tick | None
    """The tick of a schedule that enqueued it, if one did."""
    sensitive: bool
    payload: StoredText | None
    output: StoredText | None


def read_job(
    console: Console, job_id: UUID, permissions: Collection[Permission]
) -> JobRegions | None:
    """Everything a job's page shows to somebody with ``permissions``; None if it is not stored."""
    monitor = console.app.monitor
    sensitive = Permission.VIEW_SENSITIVE in permissions
    detail = monitor.detail(job_id, with_output=sensitive)
    explanation = monitor.explain(job_id)
    graph = monitor.graph(job_id, limit=SMALL_GRAPH_JOBS_MAX)
    actions = _actions(console, job_id, permissions)
    if detail is None or explanation is None or graph is None or actions is None:
        return None
    history = monitor.history(job_id)
    if not sensitive:
        detail, history = _without_content(detail), _without_details(history)
    return JobRegions(
        job=detail.job,
        detail=detail,
        explanation=explanation,
        timeline=draw_timeline(history, console.now()),
        attempts=tuple(reversed(attempts_of(history))),
        history=history,
        log_off_since=monitor.history_policy().off_since,
        actions=actions,
        drawn=draw(graph, console.layouts),
        audit=monitor.audit_of_job(job_id),
        tick=monitor.tick_of_job(job_id),
        sensitive=sensitive,
        payload=stored_text(detail.payload) if sensitive else None,
        output=stored_text(detail.output) if sensitive and detail.output is not None else None,
    )


def stored_text(text: str) -> StoredText:
    """A stored JSON text with its layout over lines."""
    return StoredText(text, indented(text))


def without_cause_text(job: JobView) -> JobView:
    """The job as somebody sees it who may not view sensitive content."""
    return replace(job, cause=replace(job.cause, text=None)) if job.cause else job


def _without_content(detail: JobDetail) -> JobDetail:
    return replace(detail, job=without_cause_text(detail.job), payload="", output=None)


def _without_details(history: History) -> History:
    """The history with failure details emptied: that there is one is no secret."""
    return replace(
        history,
        transitions=tuple(
            row if row.failure_detail is None else replace(row, failure_detail="")
            for row in history.transitions
        ),
    )


def _actions(
    console: Console, job_id: UUID, permissions: Collection[Permission]
) -> tuple[Action, ...] | None:
    operator = console.app.operator
    requeue, cancel = operator.preview_requeue(job_id), operator.preview_cancel(job_id)
    if requeue is None or cancel is None:
        return None
    return (
        Action("Requeue", "requeue", requeue, Permission.REQUEUE in permissions, primary=True),
        Action("Cancel", "cancel", cancel, Permission.CANCEL in permissions, primary=False),
    )
