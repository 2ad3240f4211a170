"""``/queue?queue=NAME``: one queue, who holds its slots, and its gates: pause and limit.

The name is a parameter and not part of the path, because it may hold any character.
"""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from latchwork.errors import InvalidValue
from latchwork.json_shapes import queue_shape
from latchwork.operator_shapes import queue_preview_shape
from latchwork.values import MAX_LIMIT, checked_name
from latchwork_console.console import Console, console_of
from latchwork_console.job_filters import BadParameter, read_name
from latchwork_console.live_views import LiveView
from latchwork_console.pages.queues import with_forecasts
from latchwork_console.queue_contexts import QueueContext
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json


def show(request: Request) -> Response:
    """Answer one queue; with ``limit`` also what setting it would do, with an empty one lifting."""
    query = request.query_params
    name = read_name(query, "queue")
    weighed = query.get("limit")
    context = read_queue(console_of(request), name)
    if weighed is not None:
        context = _weighing(console_of(request), context, read_limit(weighed))
    if wants_json(request):
        shape = None if context.row is None else queue_shape(context.row.queue)
        previews = {("resume" if context.paused else "pause"): queue_preview_shape(context.gate)}
        if context.limit_preview is not None:
            previews["set_limit"] = queue_preview_shape(context.limit_preview)
        return respond_json({"name": name, "queue": shape, "previews": previews})
    return respond(request, page="pages/queue.html", context=context)


def read_limit(text: str) -> int | None:
    """A limit as a form sends it: empty is none.

    Raises:
        BadParameter: it is not a whole number from 1 on.
    """
    stripped = text.strip()
    if not stripped:
        return None
    plain = stripped.isascii() and stripped.isdecimal() and len(stripped) <= len(str(MAX_LIMIT))
    if not plain or not 1 <= int(stripped) <= MAX_LIMIT:
        raise BadParameter("limit", f"must be a whole number from 1 to {MAX_LIMIT:,}, or empty")
    return int(stripped)


def read_queue(console: Console, name: str) -> QueueContext:
    """One queue, which need not have any job yet."""
    monitor, operator = console.app.monitor, console.app.operator
    try:
        checked_name("queue", name)
    except InvalidValue as error:
        raise BadParameter("queue", error.problem) from error
    token = monitor.log_token()
    found = [one for one in monitor.queues() if one.name == name]
    paused = bool(found) and found[0].paused_at is not None
    preview = operator.preview_resume_queue if paused else operator.preview_pause_queue
    return QueueContext(
        queue_name=name,
        row=with_forecasts(found)[0] if found else None,
        paused=paused,
        gate=preview(name),
        limit=found[0].concurrency_limit if found else None,
        wanted=found[0].concurrency_limit if found else None,
        limit_preview=None,
        stream_token=token,
    )


def _weighing(console: Console, context: QueueContext, wanted: int | None) -> QueueContext:
    preview = console.app.operator.preview_set_limit(context.queue_name, wanted)
    return replace(context, wanted=wanted, limit_preview=preview)


def _regions(console: Console, around: Surroundings, name: str) -> str:
    if not name:
        return ""
    return console.renderer.render("partials/queue_regions.html", read_queue(console, name), around)


LIVE = LiveView(regions=_regions)
