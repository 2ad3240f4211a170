"""``/workflows/{id}``: its graph, live, its members, and what may be done about it."""

from dataclasses import fields
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from latchwork.workflow_shapes import workflow_detail_shape
from latchwork.workflow_views import WorkflowDetail
from latchwork_console.console import Console, Permission, console_of, permits
from latchwork_console.graph_contexts import read_panel
from latchwork_console.job_filters import read_job_id
from latchwork_console.live_views import LiveView, subject_id
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json
from latchwork_console.workflow_contexts import WorkflowContext, read_workflow


def show(request: Request) -> Response:
    """Answer the page, its side panel alone when htmx asks for it, or the workflow as JSON."""
    console = console_of(request)
    workflow_id: UUID = request.path_params["workflow_id"]
    if wants_json(request):
        return respond_json(_shape(request))
    permissions = console.permissions(request)
    regions = read_workflow(console, workflow_id, permissions)
    if regions is None:
        raise _not_stored()
    selected = read_job_id(request.query_params, "job")
    panel = read_panel(console, regions.drawn, selected, permissions) if selected else None
    if selected and panel is None:
        raise HTTPException(404, "The selected job is not stored. It may have been purged.")
    return respond(
        request,
        page="pages/workflow.html",
        partial="partials/graph_panel.html" if panel else None,
        context=WorkflowContext(
            **{one.name: getattr(regions, one.name) for one in fields(regions)},
            panel=panel,
            whole=request.query_params.get("view") == "whole",
        ),
    )


def show_input(request: Request) -> Response:
    """Answer the input as plain text, byte for byte."""
    stored = _detail(request).input
    if stored is None:
        raise HTTPException(404, "This workflow has no input.")
    return PlainTextResponse(stored)


def _regions(console: Console, around: Surroundings, subject: str) -> str:
    workflow_id = subject_id(subject)
    context = read_workflow(console, workflow_id, around.permissions) if workflow_id else None
    if context is None:
        return ""
    return console.renderer.render("partials/workflow_live.html", context, around)


LIVE = LiveView(regions=_regions)


def _detail(request: Request) -> WorkflowDetail:
    detail = console_of(request).app.monitor.workflow(request.path_params["workflow_id"])
    if detail is None:
        raise _not_stored()
    return detail


def _shape(request: Request) -> dict[str, object]:
    detail = _detail(request)
    graph = console_of(request).app.monitor.workflow_graph(detail.workflow.id)
    sensitive = permits(request, Permission.VIEW_SENSITIVE)
    return workflow_detail_shape(detail, graph, sensitive=sensitive)


def _not_stored() -> HTTPException:
    return HTTPException(404, "No such workflow is stored. It may have been purged.")
