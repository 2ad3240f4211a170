"""``/static/DIGEST/NAME``: style, script, icons and fonts, kept by browsers for ever."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from latchwork_console.console import console_of


async def show(request: Request) -> Response:
    """Answer one static file from memory."""
    static = console_of(request).renderer.static
    file = static.get(request.path_params["name"])
    if file is None:
        raise HTTPException(404, "There is no such file.")
    current = request.path_params["digest"] == static.digest
    caching = "public, max-age=31536000, immutable" if current else "no-store"
    return Response(file.body, media_type=file.media_type, headers={"Cache-Control": caching})
