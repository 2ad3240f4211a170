"""``/workflows``: each workflow with its status and its progress, newest first."""

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from latchwork.decisions.workflows import WorkflowStatus
from latchwork.views import SEARCH_BOUND
from latchwork.workflow_shapes import workflow_listing_shape
from latchwork.workflow_views import WorkflowPage
from latchwork_console.console import Console, console_of
from latchwork_console.job_filters import MAX_CURSOR_CHARACTERS, BadParameter, read_text
from latchwork_console.live_views import LiveView
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json
from latchwork_console.workflow_contexts import (
    FACES,
    StatusTab,
    WorkflowRows,
    WorkflowsContext,
    workflow_row,
)

PAGE_WORKFLOWS = 30


def show(request: Request) -> Response:
    """Answer one page of workflows, filtered by status and name."""
    query = request.query_params
    status, name = read_status(query), read_text(query, "name")
    place = read_text(query, "page", MAX_CURSOR_CHARACTERS)
    page = console_of(request).app.monitor.workflows(status, name, place, limit=PAGE_WORKFLOWS)
    if wants_json(request):
        return respond_json(workflow_listing_shape(page))
    context = _context(page, status, name, live=name is None and place is None)
    return respond(request, page="pages/workflows.html", context=context)


def read_status(query: QueryParams) -> WorkflowStatus | None:
    """The status the address asks for.

    Raises:
        BadParameter: it is none of the four.
    """
    text = read_text(query, "status")
    try:
        return None if text is None else WorkflowStatus(text)
    except ValueError:
        raise BadParameter("status", f"must be one of {', '.join(WorkflowStatus)}") from None


def _context(
    page: WorkflowPage, status: WorkflowStatus | None, name: str | None, *, live: bool
) -> WorkflowsContext:
    def query(chosen: WorkflowStatus | None, place: str | None = None) -> dict[str, object]:
        return {"status": chosen.value if chosen else None, "name": name, "page": place}

    return WorkflowsContext(
        rows=tuple(workflow_row(one) for one in page.workflows),
        tabs=tuple(
            StatusTab(one, FACES[one] if one else None, one is status, query(one))
            for one in (None, *FACES)
        ),
        status=status,
        workflow_name=name,
        next_query=query(status, page.next) if page.next else None,
        previous_query=query(status, page.previous) if page.previous else None,
        partial=page.partial,
        live=live,
        search_bound=SEARCH_BOUND,
    )


def _regions(console: Console, around: Surroundings, subject: str) -> str:
    """The rows of the first page; the subject is its status."""
    status = WorkflowStatus(subject) if subject in set(WorkflowStatus) else None
    page = console.app.monitor.workflows(status, limit=PAGE_WORKFLOWS)
    context = WorkflowRows(tuple(workflow_row(one) for one in page.workflows))
    return console.renderer.render("partials/workflows_regions.html", context, around)


LIVE = LiveView(regions=_regions)
