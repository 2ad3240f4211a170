"""Trigger a schedule now."""

from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from latchwork.errors import OutcomeUnknown, StoreBusy
from latchwork.schedule_shapes import trigger_shape
from latchwork.schedule_views import TriggerOutcome, TriggerResult
from latchwork_console.console import console_of
from latchwork_console.rendering import link, respond_json, wants_json


async def trigger(request: Request) -> Response:
    """``POST /schedules/{schedule_id}/trigger``."""
    schedule_id: str = request.path_params["schedule_id"]
    console = console_of(request)
    act = partial(console.app.operator.trigger_schedule, schedule_id, actor=console.actor)
    result = await run_in_threadpool(_answer, act)
    if result is not None and result.outcome is TriggerOutcome.NOT_FOUND:
        raise HTTPException(404, "No schedule has this id; it may have been removed.")
    if wants_json(request):
        if result is None:
            return respond_json({"error": "The database did not answer."}, 503)
        refused = result.outcome is TriggerOutcome.REFUSED
        return respond_json(trigger_shape(schedule_id, result), 409 if refused else 200)
    outcome = "unavailable" if result is None else result.outcome.value
    address = link(request, "schedule", schedule_id=schedule_id, result=f"schedule:{outcome}")
    return RedirectResponse(address, 303)


def _answer(act: "partial[TriggerResult]") -> TriggerResult | None:
    try:
        return act()
    except (StoreBusy, OutcomeUnknown):
        return None
