"""``/static/DIGEST/NAME`` and ``/favicon.ico``: style, script, icons and fonts."""

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


async def favicon(request: Request) -> Response:
    """Answer the icon that browsers ask for beside anything that is no page and names none."""
    file = console_of(request).renderer.static.get("favicon.svg")
    assert file is not None  # noqa: S101 - part of the package
    return Response(
        file.body, media_type=file.media_type, headers={"Cache-Control": "public, max-age=86400"}
    )
