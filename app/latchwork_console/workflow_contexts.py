"""What the pages of workflows show."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from latchwork.audit_views import AuditFilter
from latchwork.decisions.states import JobState
from latchwork.decisions.workflows import RetryScope, WorkflowStatus
from latchwork.views import AuditRow, BoundedCount
from latchwork.workflow_views import WorkflowDetail, WorkflowPreview, WorkflowView
from latchwork_console.console import Console, Permission
from latchwork_console.graph_contexts import GraphPanel
from latchwork_console.graph_drawing import DrawnGraph, draw
from latchwork_console.job_contexts import StoredText, stored_text

AUDIT_ROWS = 20
BAR_WIDTH = 1_000

FACES = {
    WorkflowStatus.RUNNING: JobState.LEASED,
    WorkflowStatus.FAILED: JobState.DEAD_LETTERED,
    WorkflowStatus.CANCELLED: JobState.CANCELLED,
    WorkflowStatus.SUCCEEDED: JobState.SUCCEEDED,
}
"""Which job state's glyph and colour a status wears; its word is its own."""

_BAR_ORDER = (
    JobState.SUCCEEDED, JobState.LEASED, JobState.SCHEDULED, JobState.AWAITING_PARENT,
    JobState.CANCELLED, JobState.QUARANTINED, JobState.DEAD_LETTERED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BarSegment:
    """One state's share of a workflow's progress bar."""

    state: JobState
    count: BoundedCount
    x: int
    width: int


@dataclass(frozen=True, slots=True)
class WorkflowRow:
    """One workflow, the face of its status and its progress."""

    workflow: WorkflowView
    face: JobState
    bar: tuple[BarSegment, ...]


@dataclass(frozen=True, slots=True)
class StatusTab:
    """One status of the listing; None is all of them."""

    status: WorkflowStatus | None
    face: JobState | None
    current: bool
    query: dict[str, object]


@dataclass(frozen=True, slots=True)
class WorkflowRows:
    """The rows of the listing, which follow the workflows on its first page."""

    rows: tuple[WorkflowRow, ...]


@dataclass(frozen=True, slots=True)
class WorkflowsContext(WorkflowRows):
    """The listing of workflows."""

    tabs: tuple[StatusTab, ...]
    status: WorkflowStatus | None
    workflow_name: str | None
    next_query: dict[str, object] | None
    previous_query: dict[str, object] | None
    partial: bool
    live: bool
    search_bound: int


@dataclass(frozen=True, slots=True)
class WorkflowAction:
    """Something an operator may do to the workflow, with what it would do."""

    label: str
    route: str
    verb: str
    scope: RetryScope | None
    preview: WorkflowPreview
    permitted: bool
    look: str

    @property
    def possible(self) -> bool:
        """Whether its button works."""
        return self.preview.allowed and self.permitted


@dataclass(frozen=True, slots=True)
class WorkflowRegions:
    """The parts of a workflow's page that follow its jobs."""

    row: WorkflowRow
    detail: WorkflowDetail
    drawn: DrawnGraph
    actions: tuple[WorkflowAction, ...]
    audit: tuple[AuditRow, ...]
    sensitive: bool
    input: StoredText | None


@dataclass(frozen=True, slots=True)
class WorkflowContext(WorkflowRegions):
    """A workflow's page, and which of its jobs is selected in the graph."""

    panel: GraphPanel | None
    whole: bool


def workflow_row(workflow: WorkflowView) -> WorkflowRow:
    """A workflow as a row, with its progress drawn."""
    return WorkflowRow(workflow, FACES[workflow.status], progress(workflow))


def progress(workflow: WorkflowView) -> tuple[BarSegment, ...]:
    """The bar of a workflow: what is done first, what failed last."""
    total = workflow.size.value
    segments, passed = [], 0
    for state in _BAR_ORDER:
        count = workflow.counts.get(state)
        if count is not None:
            x, passed = round(passed * BAR_WIDTH / total), passed + count.value
            segments.append(BarSegment(state, count, x, round(passed * BAR_WIDTH / total) - x))
    return tuple(segments)


def read_workflow(
    console: Console, workflow_id: UUID, permissions: Collection[Permission]
) -> WorkflowRegions | None:
    """Everything a workflow's page shows to somebody with ``permissions``; None if unknown."""
    monitor = console.app.monitor
    sensitive = Permission.VIEW_SENSITIVE in permissions
    detail = monitor.workflow(workflow_id, with_input=sensitive)
    graph = monitor.workflow_graph(workflow_id)
    actions = _actions(console, workflow_id, permissions)
    if detail is None or graph is None or actions is None:
        return None
    about = AuditFilter(subject_kind="workflow", subject=str(workflow_id))
    return WorkflowRegions(
        row=workflow_row(detail.workflow),
        detail=detail,
        drawn=draw(graph, console.layouts),
        actions=actions,
        audit=monitor.audit_page(about, limit=AUDIT_ROWS).rows,
        sensitive=sensitive,
        input=stored_text(detail.input) if detail.input is not None else None,
    )


_RETRIES = {
    RetryScope.UNFINISHED: ("Retry unfinished", "primary"),
    RetryScope.DOWNSTREAM: ("Retry with what follows", ""),
    RetryScope.ALL: ("Retry all", ""),
}


def _actions(
    console: Console, workflow_id: UUID, permissions: Collection[Permission]
) -> tuple[WorkflowAction, ...] | None:
    operator = console.app.operator
    cancel = operator.preview_cancel_workflow(workflow_id)
    restart = operator.preview_restart_workflow(workflow_id)
    retries = [
        (scope, operator.preview_retry_workflow(workflow_id, scope=scope)) for scope in _RETRIES
    ]
    if cancel is None or restart is None:
        return None
    may_retry = Permission.RETRY_WORKFLOW in permissions
    return (
        *(
            WorkflowAction(
                _RETRIES[scope][0], "retry_workflow", "retry", scope, preview, may_retry,
                _RETRIES[scope][1],
            )
            for scope, preview in retries
            if preview is not None
        ),
        WorkflowAction("Restart", "restart_workflow", "restart", None, restart, may_retry, ""),
        WorkflowAction(
            "Cancel", "cancel_workflow", "cancel", None, cancel, Permission.CANCEL in permissions,
            "danger",
        ),
    )  # fmt: skip
