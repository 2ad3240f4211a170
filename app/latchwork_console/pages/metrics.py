"""``/metrics``: figures for Prometheus, where ``LATCHWORK_CONSOLE_METRICS`` turns them on."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from latchwork.errors import MissingExtra
from latchwork.metrics import CONTENT_TYPE, metrics_text
from latchwork_console.console import console_of


def show(request: Request) -> Response:
    """Answer the figures in Prometheus' text format.

    Raises:
        HTTPException: 404 where they are turned off, 503 where prometheus-client is missing.
    """
    app = console_of(request).app
    if not app.database.settings.console_metrics:
        raise HTTPException(404, "Metrics are off; LATCHWORK_CONSOLE_METRICS turns them on.")
    try:
        return Response(metrics_text(app), media_type=CONTENT_TYPE)
    except MissingExtra as error:
        raise HTTPException(503, f"{error}.") from error
