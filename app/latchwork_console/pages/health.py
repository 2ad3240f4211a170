"""``/health``: says nothing but ok."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse


async def show(_: Request) -> PlainTextResponse:
    """Answer that the console is up."""
    return PlainTextResponse("ok")
