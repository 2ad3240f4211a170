"""Requeue: a Dead-Lettered or Quarantined job becomes Scheduled again, due now, at attempt 0."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from latchwork_console.actions.selections import act_on_one, act_on_selected
from latchwork_console.console import console_of


async def requeue(request: Request) -> Response:
    """``POST /jobs/{job_id}/requeue``."""
    console = console_of(request)
    act = partial(console.app.operator.requeue, actor=console.actor)
    return await act_on_one(request, "requeue", act)


async def requeue_selected(request: Request) -> Response:
    """``POST /jobs/requeue`` with one ``job`` field per selected job."""
    console = console_of(request)
    act = partial(console.app.operator.requeue, actor=console.actor)
    return await act_on_selected(request, "requeue", act, console.app.operator.preview_requeue)
