"""Cancel: at once for a job that waits, by request to its worker for one that runs."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from latchwork_console.actions.selections import act_on_one, act_on_selected
from latchwork_console.console import console_of


async def cancel(request: Request) -> Response:
    """``POST /jobs/{job_id}/cancel``."""
    console = console_of(request)
    act = partial(console.app.operator.cancel, actor=console.actor)
    return await act_on_one(request, "cancel", act)


async def cancel_selected(request: Request) -> Response:
    """``POST /jobs/cancel`` with one ``job`` field per selected job."""
    console = console_of(request)
    act = partial(console.app.operator.cancel, actor=console.actor)
    return await act_on_selected(request, "cancel", act, console.app.operator.preview_cancel)
