"""``/failures``: dead-lettered and quarantined jobs by cause, and requeueing one cause's jobs."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from latchwork.bulk_shapes import group_shape
from latchwork.failure_views import FailureGroup
from latchwork.views import JobFilter
from latchwork_console.console import Console, Permission, console_of, permits
from latchwork_console.failure_contexts import (
    FailureGroupContext,
    draw_trend,
    read_failures,
    without_message,
)
from latchwork_console.job_filters import MAX_CURSOR_CHARACTERS, read_text
from latchwork_console.live_views import LiveView
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json


def show(request: Request) -> Response:
    """Answer one page of groups, those that failed last first."""
    console = console_of(request)
    page = read_text(request.query_params, "page", MAX_CURSOR_CHARACTERS)
    if wants_json(request):
        found = console.app.monitor.failures(page)
        return respond_json(
            {
                "groups": [_shape(request, group) for group in found.groups],
                "next": found.next,
                "ungrouped": found.ungrouped.value,
            }
        )
    context = read_failures(console, page, console.permissions(request))
    return respond(request, page="pages/failures.html", context=context)


def show_group(request: Request) -> Response:
    """Answer one group: its sample, its trend, and what requeueing it would do."""
    console = console_of(request)
    group = group_of(request)
    if wants_json(request):
        return respond_json(_shape(request, group))
    sensitive = permits(request, Permission.VIEW_SENSITIVE)
    shown = group if sensitive else without_message(group)
    of_group = JobFilter(cause_group=group.key)
    return respond(
        request,
        page="pages/failure_group.html",
        context=FailureGroupContext(
            group=shown,
            trend=draw_trend(group.hours, console.now()),
            sample=shown.sample,
            preview=console.app.operator.preview_requeue_matching(of_group),
            operations=tuple(
                one
                for one in console.app.monitor.bulk_operations()
                if one.job_filter.cause_group == group.key
            ),
            sensitive=sensitive,
        ),
    )


def group_of(request: Request) -> FailureGroup:
    """The group of the address.

    Raises:
        HTTPException: 404, there is none.
    """
    group = console_of(request).app.monitor.failure_group(request.path_params["key"])
    if group is None:
        raise HTTPException(404, "There is no such group of failures, or it was forgotten.")
    return group


def _shape(request: Request, group: FailureGroup) -> dict[str, object]:
    sensitive = permits(request, Permission.VIEW_SENSITIVE)
    return group_shape(group, sensitive=sensitive)


def _regions(console: Console, around: Surroundings, _: str) -> str:
    context = read_failures(console, None, around.permissions)
    return console.renderer.render("partials/failures_regions.html", context, around)


LIVE = LiveView(regions=_regions)
