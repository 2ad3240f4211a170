"""``/queues``: depth, pace, forecast, and who serves each queue."""

from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import Response

from latchwork.json_shapes import queue_shape
from latchwork.views import QueueView
from latchwork_console.console import Console, console_of
from latchwork_console.contexts import Forecast, QueueRow, QueuesContext
from latchwork_console.formatting import figure, span
from latchwork_console.live_views import LiveView
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json

STEADY_SHARE = 0.05
"""In and out within this share of each other is called steady, not growing or draining."""
LONGEST_FORECAST_MINUTES = 24 * 60


def show(request: Request) -> Response:
    """Answer all queues."""
    console = console_of(request)
    if wants_json(request):
        return respond_json({"queues": [queue_shape(one) for one in console.app.monitor.queues()]})
    return respond(request, page="pages/queues.html", context=read_queues(console))


def read_queues(console: Console) -> QueuesContext:
    """All queues, and the place to follow the log from, read before them."""
    token = console.app.monitor.log_token()
    return QueuesContext(
        queue_rows=with_forecasts(console.app.monitor.queues()), stream_token=token
    )


def with_forecasts(queues: Iterable[QueueView]) -> tuple[QueueRow, ...]:
    """Queues in the order given, each with its forecast."""
    return tuple(QueueRow(queue, forecast(queue)) for queue in queues)


def forecast(queue: QueueView) -> Forecast:
    """When the queue's due jobs will have run, judged by its pace of the last minutes.

    A queue that nobody serves or that is paused is said to be so; one that takes in as much as it
    gives out is steady; nothing is promised beyond a day.
    """
    if queue.paused_at is not None:
        by = f" by {queue.paused_by}" if queue.paused_by else ""
        return Forecast(f"paused{by}", "warn")
    if queue.due.value == 0:
        return Forecast("nothing is due", "calm")
    if not queue.served_by:
        return Forecast("will not drain", "bad")
    into, out = queue.enqueued_per_minute, queue.outcomes_per_minute
    if out == 0:
        return Forecast("nothing has ended lately", "warn")
    if abs(out - into) <= STEADY_SHARE * max(out, into):
        return Forecast("holding steady", "calm")
    if into > out:
        return Forecast(f"growing by {figure(into - out)} a minute", "warn")
    minutes = queue.due.value / (out - into)
    if minutes > LONGEST_FORECAST_MINUTES:
        return Forecast("drains in more than a day", "warn")
    more_than = "more than " if queue.due.capped else "about "
    return Forecast(f"clears in {more_than}{span(max(1, minutes * 60))}", "good")


def _regions(console: Console, around: Surroundings, _: str) -> str:
    return console.renderer.render("partials/queues_regions.html", read_queues(console), around)


LIVE = LiveView(regions=_regions)
