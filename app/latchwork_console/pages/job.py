"""``/jobs/{id}``: one job, why it is where it is, and what may be done about it."""

from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from latchwork.json_shapes import detail_shape, job_shape
from latchwork.views import JobDetail
from latchwork_console.console import Console, Permission, console_of, permits
from latchwork_console.job_contexts import read_job
from latchwork_console.live_views import LiveView, subject_id
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json


def show(request: Request) -> Response:
    """Answer the page of a job, or the job as JSON."""
    console = console_of(request)
    job_id: UUID = request.path_params["job_id"]
    if wants_json(request):
        return respond_json(_shape(request, job_id))
    context = read_job(console, job_id, console.permissions(request))
    if context is None:
        raise _not_stored()
    return respond(request, page="pages/job.html", context=context)


def payload(request: Request) -> Response:
    """Answer the payload as plain text, byte for byte."""
    return PlainTextResponse(_detail(request).payload)


def output(request: Request) -> Response:
    """Answer the output as plain text, byte for byte."""
    stored = _detail(request).output
    if stored is None:
        raise HTTPException(404, "This job has no output.")
    return PlainTextResponse(stored)


def render_regions(console: Console, around: Surroundings, subject: str) -> str:
    """The parts of the page that follow the job, as partials."""
    job_id = subject_id(subject)
    context = read_job(console, job_id, around.permissions) if job_id else None
    if context is None:
        return ""
    return console.renderer.render("partials/job_live.html", context, around)


LIVE = LiveView(regions=render_regions)


def _detail(request: Request) -> JobDetail:
    detail = console_of(request).app.monitor.detail(request.path_params["job_id"])
    if detail is None:
        raise _not_stored()
    return detail


def _shape(request: Request, job_id: UUID) -> dict[str, object]:
    monitor = console_of(request).app.monitor
    if permits(request, Permission.VIEW_SENSITIVE):
        return detail_shape(_detail(request), monitor.history(job_id).transitions)
    job = monitor.job(job_id)
    if job is None:
        raise _not_stored()
    return job_shape(job, sensitive=False)


def _not_stored() -> HTTPException:
    return HTTPException(404, "No such job is stored. It may have been purged, or never enqueued.")
