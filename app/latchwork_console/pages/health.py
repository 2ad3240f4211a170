"""``/health`` and ``/ready``: whether the console is up, and whether it can do its work."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse

from latchwork.errors import StoreError
from latchwork_console.console import console_of


async def show(_: Request) -> PlainTextResponse:
    """Answer that the console is up."""
    return PlainTextResponse("ok")


def show_ready(request: Request) -> PlainTextResponse:
    """Answer whether the database is there with this version's schema; nothing else is said."""
    try:
        console_of(request).app.database.check()
    except StoreError:
        return PlainTextResponse("unavailable", 503)
    return PlainTextResponse("ok")
