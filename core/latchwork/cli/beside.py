"""The console in a thread and an event loop of its own, beside a node in the same process.

A handler that blocks the node's event loop does not freeze the console, and the console is there to
watch the node drain.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from latchwork.application import Latchwork
from latchwork_console.server import run_console

START_SECONDS = 30


@contextmanager
def console_beside(
    app: Latchwork, host: str, port: int, *, on_started: Callable[[str], None]
) -> Iterator[None]:
    """Serve the console while the body runs; what keeps it from starting is raised here.

    Raises:
        UnsafeAddress: ``host`` is not this machine.
        OSError: the port is taken.
    """
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, str]] = Future()

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        await run_console(
            app,
            host,
            port,
            stop=stop,
            on_started=lambda address: started.set_result((loop, stop, address)),
        )

    def serve_and_tell() -> None:
        try:
            asyncio.run(serve())
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=serve_and_tell, name="latchwork-console", daemon=True)
    thread.start()
    loop, stop, address = started.result(timeout=START_SECONDS)
    on_started(address)
    try:
        yield
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(stop.set)
        thread.join()
