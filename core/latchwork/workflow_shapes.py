"""Workflows as JSON: the same on every way out."""

from latchwork.json_shapes import Shape, graph_shape, time_shape
from latchwork.views import Graph
from latchwork.workflow_views import (
    CancelWorkflowResult,
    RestartWorkflowResult,
    RetryWorkflowResult,
    WorkflowDetail,
    WorkflowMember,
    WorkflowPage,
    WorkflowView,
)


def workflow_shape(workflow: WorkflowView) -> Shape:
    """One workflow with its derived status and how many members are in each state."""
    return {
        "id": str(workflow.id),
        "name": workflow.name,
        "status": workflow.status.value,
        "created_at": time_shape(workflow.created_at),
        "restarted_from": str(workflow.restarted_from) if workflow.restarted_from else None,
        "counts": {state.value: count.value for state, count in workflow.counts.items()},
        "counts_are_capped": workflow.size.capped,
    }


def workflow_detail_shape(
    detail: WorkflowDetail, graph: Graph | None, *, sensitive: bool = True
) -> Shape:
    """One workflow with its members and the dependencies between them; the input is JSON text."""
    members = {"nodes": [], "edges": []} if graph is None else graph_shape(graph)
    return workflow_shape(detail.workflow) | {
        "input": detail.input if sensitive else None,
        "restarted_as": [str(one) for one in detail.restarted_as],
        "members": members["nodes"],
        "edges": members["edges"],
        "truncated": graph is not None and graph.truncated,
    }


def workflow_listing_shape(page: WorkflowPage) -> Shape:
    """One page of workflows, with the cursors of its neighbours."""
    return {
        "workflows": [workflow_shape(one) for one in page.workflows],
        "next": page.next,
        "previous": page.previous,
        "partial": page.partial,
    }


def workflow_result_shape(
    workflow_id: str, result: CancelWorkflowResult | RetryWorkflowResult | RestartWorkflowResult
) -> Shape:
    """What became of an action on a workflow."""
    shape: Shape = {"id": workflow_id, "outcome": result.outcome.value}
    match result:
        case CancelWorkflowResult():
            shape |= {"cancelled": result.cancelled, "requested": result.requested}
        case RetryWorkflowResult():
            live = [_member_shape(member) for member in result.live]
            shape |= {"moved": result.moved, "live": live}
        case RestartWorkflowResult():
            new_id = result.workflow_id
            shape["workflow_id"] = str(new_id) if new_id else None
    return shape


def _member_shape(member: WorkflowMember) -> Shape:
    return {"id": str(member.id), "step": member.step, "state": member.state.value}
