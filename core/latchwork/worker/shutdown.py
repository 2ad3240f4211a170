"""How a worker's process ends: signals, an event loop that waits for nobody, several processes."""

import asyncio
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

from latchwork.decisions.node import back_off_seconds
from latchwork.worker.threads import DaemonExecutor

logger = logging.getLogger(__name__)

T = TypeVar("T")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
EXECUTOR_THREADS = 32
STEADY_SECONDS = 10.0
"""A process that has run this long is started again at once when it dies."""
_LOOK_SECONDS = 0.1


@contextmanager
def stop_on_signals(stop: Callable[[], None], *, patience_seconds: float) -> Iterator[None]:
    """Call ``stop`` on SIGTERM and SIGINT; outside the main thread signals stay as they are.

    An event loop that a handler blocks hears nothing. ``patience_seconds`` after the first signal
    the process ends all the same; its leases lapse.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    over = threading.Event()

    def end_at_last() -> None:
        if not over.wait(patience_seconds):
            logger.critical("A handler blocks the event loop; the process ends without it")
            os._exit(0)

    def handle(_signal: int, _frame: FrameType | None) -> None:
        stop()
        threading.Thread(target=end_at_last, name="latchwork-last-resort", daemon=True).start()

    previous = {one: signal.signal(one, handle) for one in STOP_SIGNALS}
    try:
        yield
    finally:
        over.set()
        for one, handler in previous.items():
            signal.signal(one, handler)


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` on an event loop of its own: uvloop's if that is installed, else asyncio's.

    Unlike ``asyncio.run`` it waits neither for tasks that ignore their cancellation nor for
    threads: when this returns, the loop's tasks run no more.
    """
    loop = _new_loop()
    loop.set_default_executor(DaemonExecutor(EXECUTOR_THREADS))
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(work)
    finally:
        # Tasks left behind would complain of being destroyed; that they were is on purpose.
        loop.set_exception_handler(lambda _loop, _context: None)
        asyncio.set_event_loop(None)
        loop.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # the extra "speed" is not installed
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def call_on(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Have ``loop`` call ``call``, from any thread; a loop that is closed hears nothing."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


class _Child:
    """One process of several, started again whenever it dies."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._faults = 0
        self._start_at = 0.0
        self._started_at = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    def keep_alive(self) -> None:
        """Start the process if it does not run and its pause is over."""
        now = time.monotonic()
        if self._process is not None and self._process.poll() is not None:
            steady = now - self._started_at >= STEADY_SECONDS
            self._faults = 0 if steady else self._faults + 1
            self._start_at = now + (back_off_seconds(self._faults) if self._faults else 0.0)
            logger.warning("Worker process %d ended; it is replaced", self._process.pid)
            self._process = None
        if self._process is None and now >= self._start_at:
            # A session of its own: a Ctrl-C reaches it through us, once.
            self._process = subprocess.Popen(self._command, start_new_session=True)  # noqa: S603
            self._started_at = now

    def stop(self) -> None:
        """Ask the process to drain."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until the process has ended; returns its exit code."""
        return 0 if self._process is None else self._process.wait()


def run_processes(command: Sequence[str], count: int) -> int:
    """Run ``command`` in ``count`` processes until SIGTERM or SIGINT, which are passed on.

    A process that dies is replaced, with a growing pause if it keeps dying.

    Returns:
        The exit code: 0 after a clean drain of all.
    """
    children = [_Child(command) for _ in range(count)]
    stopping = False

    def handle(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        if stopping:  # asked again: the processes hurry, as one alone would
            for child in children:
                child.stop()
        stopping = True

    previous = {one: signal.signal(one, handle) for one in STOP_SIGNALS}
    try:
        while not stopping:
            for child in children:
                child.keep_alive()
            time.sleep(_LOOK_SECONDS)
        # Once each, and none is starting now: a second signal could end one that is all but done.
        for child in children:
            child.stop()
        return max(abs(child.wait()) for child in children)
    finally:
        for one, handler in previous.items():
            signal.signal(one, handler)
