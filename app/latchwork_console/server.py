"""The console as an ASGI application, and as a server of its own."""

import asyncio
import contextlib
import getpass
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from latchwork_console.broadcaster import Broadcaster
from latchwork_console.console import Console, Permissions, local_operator
from latchwork_console.problems import PROBLEM_HANDLERS
from latchwork_console.rendering import Renderer
from latchwork_console.routes import ADDRESSES, LIVE_VIEWS, build_routes
from latchwork_console.security import MAX_BODY_BYTES, SecurityMiddleware, check_loopback

if TYPE_CHECKING:
    from latchwork.application import Latchwork

DRAIN_SECONDS = 5


def create_console(
    app: "Latchwork",
    *,
    allowed_hosts: Collection[str] = (),
    permissions: Permissions = local_operator,
    environment: str | None = None,
) -> Starlette:
    """The console of one application, to be served or mounted under a prefix.

    Arguments:
        app: the application whose jobs are shown.
        allowed_hosts: host names it answers to, beside localhost and literal IP addresses.
        permissions: given a request, the permissions of its sender; by default all of them, so
            whoever mounts the console elsewhere than on loopback passes a function of its own.
        environment: the name shown on every page; by default the database's.

    Raises:
        UndeclaredPermission: a route declares no permission.
    """
    routes = build_routes(ADDRESSES)
    renderer = Renderer({route.name: route.path_format for route in routes})
    console = Console(
        app=app,
        renderer=renderer,
        actor=f"console:{_operating_system_user()}",
        environment=environment or _database_name(app),
        permissions=permissions,
    )
    console.broadcaster = Broadcaster(console, LIVE_VIEWS)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        console.start_upkeep()
        yield
        await console.broadcaster.stop()
        console.layouts.close()
        await run_in_threadpool(console.stop_upkeep)

    starlette = Starlette(
        routes=routes,
        middleware=[
            Middleware(SecurityMiddleware, allowed_hosts=allowed_hosts),
            Middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES),
        ],
        exception_handlers=PROBLEM_HANDLERS,
        lifespan=lifespan,
    )
    # A redirect would name a scheme and host taken from the request.
    starlette.router.redirect_slashes = False
    starlette.state.console = console
    return starlette


async def run_console(
    app: "Latchwork",
    host: str = "127.0.0.1",
    port: int = 8321,
    *,
    stop: asyncio.Event,
    on_started: Callable[[str], None] | None = None,
) -> None:
    """Serve the console on the running event loop until ``stop`` is set, then end cleanly.

    ``on_started`` is told the console's address once it answers; port 0 picks a free one.

    Raises:
        UnsafeAddress: ``host`` is not this machine.
        OSError: the port is taken.
    """
    check_loopback(host)
    starlette = create_console(app)
    console: Console = starlette.state.console
    listener = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
    )
    server = _EmbeddedServer(
        uvicorn.Config(
            starlette,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
    )
    if on_started is not None:
        name = f"[{host}]" if ":" in host else host
        on_started(f"http://{name}:{listener.getsockname()[1]}")
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        # Open streams end first: the server waits for every answer that is still being sent.
        await console.broadcaster.stop()
        console.layouts.close()
        server.should_exit = True
        await serving


def serve_console(
    app: "Latchwork",
    host: str = "127.0.0.1",
    port: int = 8321,
    *,
    on_started: Callable[[str], None] | None = None,
) -> None:
    """Serve the console until SIGTERM or SIGINT; a clean end returns.

    Raises:
        UnsafeAddress: ``host`` is not this machine.
        OSError: the port is taken.
    """

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await run_console(app, host, port, stop=stop, on_started=on_started)

    asyncio.run(serve())


class _EmbeddedServer(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _operating_system_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in some containers
        return str(os.getuid())


def _database_name(app: "Latchwork") -> str:
    engine = "SQLite" if app.database.is_sqlite else "PostgreSQL"
    name = PurePath(app.database.engine.url.database or "memory").stem
    return f"{name} · {engine}"
