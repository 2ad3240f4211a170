"""``latchwork workflows``: look at workflows, and cancel, retry or restart them."""

from typing import Annotated
from uuid import UUID

import typer

from latchwork.cli.acting import Actor
from latchwork.cli.applications import opened
from latchwork.cli.options import AsJson, DatabaseUrl
from latchwork.cli.printing import complain, print_facts, print_json, print_table
from latchwork.decisions.workflows import RetryScope, WorkflowStatus
from latchwork.views import Graph
from latchwork.workflow_shapes import (
    workflow_detail_shape,
    workflow_listing_shape,
    workflow_result_shape,
)
from latchwork.workflow_views import (
    CancelWorkflowResult,
    RestartWorkflowResult,
    RetryWorkflowResult,
    WorkflowDetail,
    WorkflowOutcome,
    WorkflowPage,
    WorkflowView,
)

WorkflowId = Annotated[UUID, typer.Argument(metavar="ID", help="A workflow's id.")]
Result = CancelWorkflowResult | RetryWorkflowResult | RestartWorkflowResult

command = typer.Typer()
workflows = typer.Typer(help="Look at workflows, cancel, retry or restart them.")
command.add_typer(workflows, name="workflows")


@workflows.command("list")
def list_workflows(
    database: DatabaseUrl,
    *,
    status: Annotated[WorkflowStatus | None, typer.Option(help="Only of this status.")] = None,
    name: Annotated[str | None, typer.Option(help="Only of this name.")] = None,
    limit: Annotated[int, typer.Option(help="Workflows on the page, at most 200.")] = 50,
    page: Annotated[
        str | None, typer.Option(help="Another page: a cursor of the one before.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List workflows, newest first."""
    with opened(database) as app:
        found = app.monitor.workflows(status, name, page, limit=limit)
    if json:
        print_json(workflow_listing_shape(found))
    else:
        _print_page(found)


@workflows.command("show")
def show_workflow(workflow_id: WorkflowId, database: DatabaseUrl, *, json: AsJson = False) -> None:
    """Show one workflow: its status, its steps and what they wait for."""
    with opened(database) as app:
        detail = app.monitor.workflow(workflow_id)
        graph = app.monitor.workflow_graph(workflow_id)
    if detail is None or graph is None:
        complain(f"workflow {workflow_id} is not stored here")
        raise typer.Exit(1)
    if json:
        print_json(workflow_detail_shape(detail, graph))
    else:
        _print_workflow(detail, graph)


@workflows.command("cancel")
def cancel_workflow(
    workflow_id: WorkflowId, database: DatabaseUrl, actor: Actor, *, json: AsJson = False
) -> None:
    """Cancel every step that has not ended; running ones are asked to stop."""
    with opened(database) as app:
        result = app.operator.cancel_workflow(workflow_id, actor=actor)
    said = f"{result.cancelled} cancelled, {result.requested} running and asked to stop"
    _tell(workflow_id, result, said, "has ended: nothing to cancel", json=json)


@workflows.command("retry")
def retry_workflow(
    workflow_id: WorkflowId,
    database: DatabaseUrl,
    actor: Actor,
    *,
    scope: Annotated[
        RetryScope,
        typer.Option(help="unfinished: what has not succeeded; downstream: and what follows it."),
    ] = RetryScope.UNFINISHED,
    json: AsJson = False,
) -> None:
    """Give steps of an ended workflow a new life, in place."""
    with opened(database) as app:
        result = app.operator.retry_workflow(workflow_id, scope=scope, actor=actor)
    live = ", ".join(f"{one.step} is {one.state.label}" for one in result.live[:5])
    more = " and more" if len(result.live) > 5 else ""
    _tell(
        workflow_id, result, f"{result.moved} steps moved",
        f"has not ended: {live}{more}: refused", json=json,
    )  # fmt: skip


@workflows.command("restart")
def restart_workflow(
    workflow_id: WorkflowId, database: DatabaseUrl, actor: Actor, *, json: AsJson = False
) -> None:
    """Start a new workflow with the same steps; the old one stays as it is."""
    with opened(database) as app:
        result = app.operator.restart_workflow(workflow_id, actor=actor)
    _tell(workflow_id, result, f"restarted as {result.workflow_id}", "", json=json)


def _tell(workflow_id: UUID, result: Result, done: str, refused: str, *, json: bool) -> None:
    """Say what became of an action; exit with 1 where it was refused or there is no such one."""
    failed = result.outcome in (WorkflowOutcome.REFUSED, WorkflowOutcome.NOT_FOUND)
    if json:
        print_json(workflow_result_shape(str(workflow_id), result))
    elif result.outcome is WorkflowOutcome.NOT_FOUND:
        complain(f"workflow {workflow_id} is not stored here")
    elif result.outcome is WorkflowOutcome.REFUSED:
        complain(f"workflow {workflow_id} {refused}")
    elif result.outcome is WorkflowOutcome.UNCHANGED:
        typer.echo(f"{workflow_id} every step has succeeded: nothing to retry")
    else:
        typer.echo(f"{workflow_id} {done}")
    if failed:
        raise typer.Exit(1)


def _print_page(page: WorkflowPage) -> None:
    headings = ("id", "status", "name", "started", "steps")
    rows = [
        (one.id, one.status.label, one.name, one.created_at, _figures(one))
        for one in page.workflows
    ]
    print_table(headings, rows)
    if page.next:
        typer.echo(f"more: --page {page.next}")


def _print_workflow(detail: WorkflowDetail, graph: Graph) -> None:
    workflow = detail.workflow
    print_facts(
        (
            ("id", workflow.id),
            ("name", workflow.name),
            ("status", workflow.status.label),
            ("started", workflow.created_at),
            ("steps", _figures(workflow)),
            ("restarted from", workflow.restarted_from),
            ("restarted as", "\n".join(map(str, detail.restarted_as))),
            ("input", detail.input),
        )
    )
    typer.echo()
    steps = {node.id: node.step for node in graph.nodes}
    parents: dict[UUID, list[str]] = {node.id: [] for node in graph.nodes}
    for edge in graph.edges:
        parents[edge.child].append(str(steps[edge.parent]))
    headings = ("step", "state", "job", "wire name", "attempt", "after")
    rows = [
        (node.step, node.state.label, node.id, node.wire_name, node.attempt,
         ", ".join(parents[node.id]))
        for node in graph.nodes
    ]  # fmt: skip
    print_table(headings, rows)
    if graph.truncated:
        typer.echo(f"and more: only the first {len(graph.nodes)} steps are listed")


def _figures(workflow: WorkflowView) -> str:
    return ", ".join(f"{count} {state.label}" for state, count in workflow.counts.items())
