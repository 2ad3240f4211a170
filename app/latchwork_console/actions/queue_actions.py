"""Pause, resume and limit a queue; each form leads back to the queue's page with the result."""

from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from latchwork.operator_shapes import queue_result_shape
from latchwork.queue_views import QueueResult
from latchwork_console.actions.forms import answered, read_field, respond_unanswered
from latchwork_console.console import console_of
from latchwork_console.pages.queue import read_limit
from latchwork_console.rendering import link, respond_json, wants_json


async def pause_queue(request: Request) -> Response:
    """``POST /queues/pause`` with the queue's name in ``queue``."""
    form = await request.form()
    return await _act(request, form, console_of(request).app.operator.pause_queue)


async def resume_queue(request: Request) -> Response:
    """``POST /queues/resume`` with the queue's name in ``queue``."""
    form = await request.form()
    return await _act(request, form, console_of(request).app.operator.resume_queue)


async def limit_queue(request: Request) -> Response:
    """``POST /queues/limit`` with ``queue`` and ``limit``, which is empty for none."""
    form = await request.form()
    limit = read_limit(read_field(form, "limit"))
    return await _act(request, form, console_of(request).app.operator.set_limit, limit=limit)


async def _act(
    request: Request, form: FormData, act: Callable[..., QueueResult], **given: Any
) -> Response:
    name = read_field(form, "queue")
    result = await answered(partial(act, name, actor=console_of(request).actor, **given))
    if wants_json(request):
        if result is None:
            return respond_unanswered()
        return respond_json(queue_result_shape(result))
    outcome = "unavailable" if result is None else result.outcome.value
    return RedirectResponse(link(request, "queue", queue=name, result=f"queue:{outcome}"), 303)
