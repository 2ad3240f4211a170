"""Pause, resume and limit a queue; each form leads back to the queue's page with the result."""

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from latchwork.errors import OutcomeUnknown, StoreBusy
from latchwork.operator_shapes import queue_result_shape
from latchwork.queue_views import QueueResult
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
    limit = read_limit(_field(form, "limit"))
    return await _act(request, form, console_of(request).app.operator.set_limit, limit=limit)


async def _act(
    request: Request, form: FormData, act: Callable[..., QueueResult], **given: Any
) -> Response:
    name = _field(form, "queue")
    result = await run_in_threadpool(_answer, act, name, console_of(request).actor, given)
    if wants_json(request):
        if result is None:
            return respond_json({"error": "The database did not answer."}, 503)
        return respond_json(queue_result_shape(result))
    outcome = "unavailable" if result is None else result.outcome.value
    return RedirectResponse(link(request, "queue", queue=name, result=f"queue:{outcome}"), 303)


def _answer(
    act: Callable[..., QueueResult], name: str, actor: str, given: dict[str, Any]
) -> QueueResult | None:
    try:
        return act(name, actor=actor, **given)
    except (StoreBusy, OutcomeUnknown):
        return None


def _field(form: FormData, name: str) -> str:
    value = form.get(name)
    if not isinstance(value, str):
        raise HTTPException(400, f"The field “{name}” is missing.")
    return value
