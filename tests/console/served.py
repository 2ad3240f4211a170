"""A console on a real server, for tests of its streams and in the browser."""

import asyncio
import threading

from latchwork.application import Latchwork
from latchwork_console.server import run_console

WAIT_SECONDS = 20


class ServedConsole:
    """A console served by a thread of its own until ``stop``."""

    def __init__(self, app: Latchwork) -> None:
        self._app = app
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._started.wait(WAIT_SECONDS)

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        await run_console(self._app, "127.0.0.1", 0, stop=self._stop, on_started=self._note_address)

    def _note_address(self, address: str) -> None:
        self.address = address
        self._started.set()

    def stop(self, within_seconds: float = WAIT_SECONDS) -> None:
        """End the server; fails if it does not end in time."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(within_seconds)
        assert not self._thread.is_alive()
