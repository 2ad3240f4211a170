"""What the page of a graph shows."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from latchwork.views import Explanation, GraphNode, JobView
from latchwork_console.console import Console, Permission
from latchwork_console.graph_drawing import DrawnGraph, ListedBox
from latchwork_console.job_contexts import without_cause_text


@dataclass(frozen=True, slots=True)
class GraphPanel:
    """The side panel: one job's facts, and if its box is folded those who are alike."""

    focus_id: UUID
    route: str
    address: dict[str, UUID]
    job: JobView
    explanation: Explanation
    members: tuple[GraphNode, ...]
    members_name: str


@dataclass(frozen=True, slots=True)
class GraphPage:
    """A graph, what is selected in it, and whether it is scaled to be seen whole."""

    drawn: DrawnGraph
    panel: GraphPanel
    whole: bool


@dataclass(frozen=True, slots=True)
class LiveGraph:
    """The parts of the page that follow the jobs."""

    drawn: DrawnGraph


def read_panel(
    console: Console, drawn: DrawnGraph, selected_id: UUID, permissions: Collection[Permission]
) -> GraphPanel | None:
    """What the side panel says about a job to somebody; None if the job is not stored."""
    job = console.app.monitor.job(selected_id)
    explanation = console.app.monitor.explain(selected_id)
    if job is None or explanation is None:
        return None
    fold = _fold_of(drawn.listed, selected_id)
    return GraphPanel(
        focus_id=drawn.focus,
        route=drawn.route,
        address=drawn.address,
        job=job if Permission.VIEW_SENSITIVE in permissions else without_cause_text(job),
        explanation=explanation,
        members=fold.members if fold else (),
        members_name=fold.box.name if fold else "",
    )


def _fold_of(listed: tuple[ListedBox, ...], selected_id: UUID) -> ListedBox | None:
    for one in listed:
        if any(member.id == selected_id for member in one.members):
            return one
    return None
