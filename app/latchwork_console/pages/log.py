"""``/log``: every transition, as it happens and as it was."""

from starlette.requests import Request
from starlette.responses import Response

from latchwork.json_shapes import transition_shape
from latchwork.views import TransitionPage, TransitionView
from latchwork_console.console import Console, Permission, console_of, permits
from latchwork_console.contexts import LogContext, LogRowContext
from latchwork_console.job_filters import (
    BadParameter,
    log_chips,
    log_query,
    read_log_filter,
    read_position,
    read_time,
)
from latchwork_console.live_views import LiveView
from latchwork_console.rendering import Surroundings, respond, respond_json_lines, wants_json

PAGE_ROWS = 100


def show(request: Request) -> Response:
    """Answer one page of the log: the newest rows and live, or older ones and still."""
    query = request.query_params
    log_filter = read_log_filter(query)
    before, after = read_position(query, "before"), read_position(query, "after")
    at = read_time(query, "at")
    if sum(one is not None for one in (before, after, at)) > 1:
        raise BadParameter("at", "cannot be combined with another place in the log")
    monitor = console_of(request).app.monitor
    log_page: TransitionPage
    if at is not None:
        log_page = monitor.transitions_at(at, log_filter, limit=PAGE_ROWS)
    else:
        log_page = monitor.transitions(
            log_filter, before_position=before, after_position=after, limit=PAGE_ROWS
        )
    if wants_json(request):
        sensitive = permits(request, Permission.VIEW_SENSITIVE)
        return respond_json_lines(
            transition_shape(one, sensitive=sensitive) for one in log_page.transitions
        )
    return respond(
        request,
        page="pages/log.html",
        context=LogContext(
            log_filter=log_filter,
            chips=log_chips(log_filter),
            log_page=log_page,
            facets=monitor.facets(),
            live=before is None and at is None and (after is None or log_page.newer is None),
            at=at,
            log_off_since=monitor.history_policy().off_since,
            query=log_query(log_filter),
        ),
    )


def _row(console: Console, around: Surroundings, transition: TransitionView) -> str:
    context = LogRowContext(transition=transition, fresh=True)
    return console.renderer.render("partials/log_row.html", context, around)


LIVE = LiveView(row=_row)
