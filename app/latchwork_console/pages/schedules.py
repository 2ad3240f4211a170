"""``/schedules`` and ``/schedule?schedule=ID``: when each ticks, what became of its ticks."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from latchwork.errors import InvalidValue
from latchwork.schedule_shapes import schedule_shape, tick_shape, trigger_preview_shape
from latchwork_console.console import Console, Permission, console_of, permits
from latchwork_console.job_filters import read_name
from latchwork_console.live_views import LiveView
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json
from latchwork_console.schedule_contexts import ScheduleRegions, read_schedule, read_schedules


def show(request: Request) -> Response:
    """Answer all schedules."""
    console = console_of(request)
    context = read_schedules(console)
    if wants_json(request):
        sensitive = permits(request, Permission.VIEW_SENSITIVE)
        shapes = [schedule_shape(one, sensitive=sensitive) for one in context.schedules]
        return respond_json({"schedules": shapes})
    return respond(request, page="pages/schedules.html", context=context)


def show_one(request: Request) -> Response:
    """Answer one schedule with its last ticks."""
    console = console_of(request)
    found = _find(console, request)
    if wants_json(request):
        shape = schedule_shape(found.view, sensitive=found.payload is not None)
        ticks = [tick_shape(one) for one in found.ticks]
        return respond_json(
            shape | {"ticks": ticks, "trigger": trigger_preview_shape(found.preview)}
        )
    return respond(request, page="pages/schedule.html", context=found)


def _find(console: Console, request: Request) -> ScheduleRegions:
    schedule_id = read_name(request.query_params, "schedule")
    try:
        found = read_schedule(console, schedule_id, console.permissions(request))
    except InvalidValue:
        found = None
    if found is None:
        raise HTTPException(404, "No schedule has this id; it may have been removed.")
    return found


def _regions(console: Console, around: Surroundings, _: str) -> str:
    context = read_schedules(console)
    return console.renderer.render("partials/schedules_regions.html", context, around)


def _regions_of_one(console: Console, around: Surroundings, subject: str) -> str:
    context = read_schedule(console, subject, around.permissions) if subject else None
    if context is None:
        return ""
    return console.renderer.render("partials/schedule_regions.html", context, around)


LIVE = LiveView(regions=_regions)
LIVE_ONE = LiveView(regions=_regions_of_one)
