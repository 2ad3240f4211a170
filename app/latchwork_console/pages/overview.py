"""``/``: what needs attention, how many jobs are where, what lately ended, what happens now."""

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from latchwork.decisions.states import JobState
from latchwork.errors import StoreError
from latchwork.views import LogFilter, TransitionView
from latchwork_console.charts import Chart, draw_outcomes
from latchwork_console.console import Console, console_of
from latchwork_console.contexts import LogRowContext, OverviewContext, OverviewRegions
from latchwork_console.live_views import LiveView
from latchwork_console.pages.queues import with_forecasts
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json

T = TypeVar("T")

TAIL_ROWS = 15
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def show(request: Request) -> Response:
    """Answer the overview; a part whose data cannot be read says so, the others stand."""
    console = console_of(request)
    if wants_json(request):
        counts = console.app.monitor.counts().by_state
        attention = console.app.monitor.attention()
        return respond_json(
            {
                "counts": {state.value: counts.get(state, 0) for state in JobState},
                "attention": [
                    {"code": one.code, "subject": one.subject, "sentence": one.sentence}
                    for one in attention
                ],
            }
        )
    monitor = console.app.monitor
    tail = readable(lambda: monitor.transitions(LogFilter(), limit=TAIL_ROWS))
    history = readable(monitor.history_policy)
    regions = read_regions(console)
    return respond(
        request,
        page="pages/overview.html",
        context=OverviewContext(
            **{one.name: getattr(regions, one.name) for one in fields(regions)},
            transitions=None if tail is None else tail.transitions,
            log_off_since=None if history is None else history.off_since,
            stream_token=None if tail is None else tail.token,
        ),
    )


def readable(read: Callable[[], T]) -> T | None:
    """What ``read`` returns, or None while the store does not answer."""
    try:
        return read()
    except StoreError:
        return None


def read_regions(console: Console) -> OverviewRegions:
    """Everything on the overview but the tail of the log."""
    monitor = console.app.monitor
    queues = readable(monitor.queues)
    return OverviewRegions(
        attention=readable(monitor.attention),
        state_counts=readable(monitor.counts),
        minutes=readable(lambda: _chart(console, "minute", MINUTE, 60, "Outcomes per minute")),
        hours=readable(lambda: _chart(console, "hour", HOUR, 24, "Outcomes per hour")),
        queue_rows=None if queues is None else with_forecasts(queues),
    )


def _chart(console: Console, period: str, step: timedelta, count: int, title: str) -> Chart:
    now = console.now()
    points = console.app.monitor.rates(
        "hour" if period == "hour" else "minute", since=now - step * (count - 1), until=now
    )
    return draw_outcomes(points, until=now, step=step, count=count, title=title)


def _row(console: Console, around: Surroundings, transition: TransitionView) -> str:
    context = LogRowContext(transition=transition, fresh=True)
    return console.renderer.render("partials/tail_row.html", context, around)


def _regions(console: Console, around: Surroundings, _: str) -> str:
    return console.renderer.render("partials/overview_regions.html", read_regions(console), around)


LIVE = LiveView(row=_row, regions=_regions)
