"""Trigger a schedule now."""

from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from latchwork.schedule_shapes import trigger_shape
from latchwork.schedule_views import TriggerOutcome
from latchwork_console.actions.forms import answered, read_field, respond_unanswered
from latchwork_console.console import console_of
from latchwork_console.rendering import link, respond_json, wants_json


async def trigger(request: Request) -> Response:
    """``POST /schedules/trigger`` with the schedule's id in ``schedule``."""
    schedule_id = read_field(await request.form(), "schedule")
    console = console_of(request)
    act = partial(console.app.operator.trigger_schedule, schedule_id, actor=console.actor)
    result = await answered(act)
    if result is not None and result.outcome is TriggerOutcome.NOT_FOUND:
        raise HTTPException(404, "No schedule has this id; it may have been removed.")
    if wants_json(request):
        if result is None:
            return respond_unanswered()
        refused = result.outcome is TriggerOutcome.REFUSED
        return respond_json(trigger_shape(schedule_id, result), 409 if refused else 200)
    outcome = "unavailable" if result is None else result.outcome.value
    address = link(request, "schedule", schedule=schedule_id, result=f"schedule:{outcome}")
    return RedirectResponse(address, 303)
