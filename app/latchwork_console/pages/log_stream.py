"""``/log/stream``: the live connection of every page."""

from starlette.requests import Request
from starlette.responses import Response

from latchwork_console.broadcaster import Channel, Wish
from latchwork_console.console import console_of
from latchwork_console.job_filters import BadParameter, read_log_filter, read_text, read_token
from latchwork_console.rendering import prefix_of
from latchwork_console.streams import LogStream

MAX_SUBJECT_CHARACTERS = 128


async def show(request: Request) -> Response:
    """Open a stream of server-sent events.

    The query names the page's ``view`` and ``subject``, the log's filters, and ``after``, the place
    the page was rendered at. ``Last-Event-ID``, which a reconnecting browser sends, wins over it.
    """
    console = console_of(request)
    query = request.query_params
    view = read_text(query, "view") or "log"
    if view not in console.broadcaster.views:
        raise BadParameter("view", "names no live page")
    resumed = read_token(request.headers.get("last-event-id"), "Last-Event-ID")
    asked = read_token(read_text(query, "after", bound=4_000), "after")
    channel = Channel(
        view=view,
        subject=read_text(query, "subject", bound=MAX_SUBJECT_CHARACTERS) or "",
        prefix=prefix_of(request),
        permissions=frozenset(console.permissions(request)),
    )
    return LogStream(
        console.broadcaster,
        Wish(
            channel=channel,
            log_filter=read_log_filter(query),
            after=resumed or asked,
            address=request.client.host if request.client else "",
        ),
    )
