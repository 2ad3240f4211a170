"""``/jobs/{id}/graph``: everything a job waits for and everything that waits for it, live."""

from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from latchwork.json_shapes import graph_shape
from latchwork_console.console import Console, console_of
from latchwork_console.graph_contexts import GraphPage, LiveGraph, read_panel
from latchwork_console.graph_drawing import draw
from latchwork_console.job_filters import BadParameter
from latchwork_console.live_views import LiveView, subject_id
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json


def show(request: Request) -> Response:
    """Answer the page, its side panel alone when htmx asks for it, or the graph as JSON."""
    console = console_of(request)
    focus_id: UUID = request.path_params["job_id"]
    graph = console.app.monitor.graph(focus_id)
    if graph is None:
        raise HTTPException(404, "No such job is stored. It may have been purged.")
    if wants_json(request):
        return respond_json(graph_shape(graph))
    drawn = draw(graph, console.layouts)
    selected_id = _selected(request) or focus_id
    panel = read_panel(console, drawn, selected_id, console.permissions(request))
    if panel is None:
        raise HTTPException(404, "The selected job is not stored. It may have been purged.")
    whole = request.query_params.get("view") == "whole"
    return respond(
        request,
        page="pages/graph.html",
        partial="partials/graph_panel.html",
        context=GraphPage(drawn=drawn, panel=panel, whole=whole),
    )


def render_regions(console: Console, around: Surroundings, subject: str) -> str:
    """The drawing, its legend and its list, as partials."""
    focus_id = subject_id(subject)
    graph = console.app.monitor.graph(focus_id) if focus_id else None
    if graph is None:
        return ""
    context = LiveGraph(draw(graph, console.layouts))
    return console.renderer.render("partials/graph_live.html", context, around)


LIVE = LiveView(regions=render_regions)


def _selected(request: Request) -> UUID | None:
    text = request.query_params.get("job")
    if text is None:
        return None
    selected = subject_id(text)
    if selected is None:
        raise BadParameter("job", "must be a job's id")
    return selected
