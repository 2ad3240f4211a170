"""Templates become answers here: one environment, one way to link, one way to respond."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from functools import partial as bind
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from latchwork.decisions.states import JobState
from latchwork_console.actions.results import Message, decode
from latchwork_console.assets import StaticFiles, asset_dir
from latchwork_console.console import Permission, console_of
from latchwork_console.formatting import FILTERS, relative

if TYPE_CHECKING:
    from latchwork.views import Counts


class PageContext(Protocol):
    """A frozen dataclass of ``contexts.py``: its fields are the names its template may use."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every template may use beside its own context."""

    prefix: str
    """The path under which the console is mounted, without a final slash."""
    now: datetime
    permissions: Collection[Permission]
    environment: str
    counts: "Counts | None"
    message: Message | None = None


@cache
def _environment() -> Environment:
    """The templates, compiled once per process."""
    environment = Environment(
        loader=FileSystemLoader(asset_dir("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(JobState=JobState, Permission=Permission, relative=relative)
    return environment


class Renderer:
    """Renders templates, with autoescape always and undefined names refused."""

    def __init__(self, paths: dict[str, str]) -> None:
        """``paths`` maps a route's name to its path, such as ``/jobs/{job_id}``."""
        self._paths = paths
        self.static = StaticFiles(asset_dir("static"))
        self._environment = _environment()

    def link(self, prefix: str, route_name: str, /, **values: object) -> str:
        """A path-only address: route parameters fill the path, all other values make the query.

        None values are left out, tuples and lists repeat their name.
        """
        path = self._paths[route_name]
        query: list[tuple[str, str]] = []
        for name, value in values.items():
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
            elif value is not None:
                many = value if isinstance(value, tuple | list) else (value,)
                query.extend((name, str(one)) for one in many)
        return prefix + path + (f"?{urlencode(query, quote_via=quote)}" if query else "")

    def asset(self, prefix: str, name: str) -> str:
        """The address of a static file, valid as long as its content."""
        if self.static.get(name) is None:
            raise KeyError(f"no static file is named {name}")
        return f"{prefix}/static/{self.static.digest}/{name}"

    def render(self, template: str, context: PageContext, around: Surroundings) -> str:
        """A template's text, from a context's fields and its surroundings."""
        return self._environment.get_template(template).render(
            {one.name: getattr(context, one.name) for one in fields(context)},
            link=bind(self.link, around.prefix),
            asset=bind(self.asset, around.prefix),
            now=around.now,
            permissions=around.permissions,
            environment=around.environment,
            counts=around.counts,
            message=around.message,
        )


def link(request: Request, route_name: str, /, **values: object) -> str:
    """A path-only address for a redirect or a JSON answer; see ``Renderer.link``."""
    return console_of(request).renderer.link(prefix_of(request), route_name, **values)


def prefix_of(request: Request) -> str:
    """The path under which the console is mounted."""
    prefix: str = request.scope.get("root_path", "")
    return prefix.rstrip("/")


def respond(
    request: Request,
    *,
    page: str,
    context: PageContext,
    partial: str | None = None,
    status: int = 200,
) -> Response:
    """An HTML answer: the whole page, or its partial when htmx asks for a part of it.

    Arguments: ``page`` and ``partial`` name templates, ``context`` is the page's frozen dataclass.
    The result of an action that led here is shown on whatever page this is.
    """
    console = console_of(request)
    wants_part = partial is not None and request.headers.get("hx-request-type") == "partial"
    text = console.renderer.render(
        partial if partial is not None and wants_part else page,
        context,
        Surroundings(
            prefix=prefix_of(request),
            now=console.now(),
            permissions=console.permissions(request),
            environment=console.environment,
            counts=console.counts(),
            message=decode(request.query_params.get("result")),
        ),
    )
    return HTMLResponse(text, status, headers={"Vary": "Accept, HX-Request-Type"})


def wants_json(request: Request) -> bool:
    """Whether the sender asks for JSON rather than a page."""
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/html" not in accept


def respond_json(value: object, status: int = 200) -> Response:
    """A JSON answer."""
    return JSONResponse(value, status, headers={"Vary": "Accept, HX-Request-Type"})


def respond_json_lines(shapes: Iterable[object]) -> Response:
    """One JSON object per line, as the transition log is given out."""
    lines = "".join(
        json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n" for one in shapes
    )
    return Response(lines, media_type="application/x-ndjson", headers={"Vary": "Accept"})
