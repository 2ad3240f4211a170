"""A clock that stands still until it is moved, and an event loop that moves it and never waits."""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, ParamSpec, TypeVar

from latchwork.clock import SystemClock
from latchwork.worker.threads import DaemonThreads

P = ParamSpec("P")
T = TypeVar("T")

RESOLUTION_SECONDS = 1e-6
"""Times are whole microseconds; what is due within one is due."""

Wait = Callable[[float | None], None]


class VirtualClock(SystemClock):
    """The time as a test says it is."""

    def __init__(self, start: datetime) -> None:
        super().__init__()
        self._start = start
        self._now = start

    def now(self) -> datetime:
        """The virtual time."""
        return self._now

    def monotonic(self) -> float:
        """Virtual seconds since the start."""
        return self.seconds_at(self._now)

    def seconds_at(self, moment: datetime) -> float:
        """What ``monotonic`` says at ``moment``."""
        return (moment - self._start).total_seconds()

    def move_to(self, moment: datetime) -> None:
        """Let it be ``moment``."""
        self._now = moment

    def move_by(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        self._now += timedelta(seconds=seconds)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on a virtual clock. Whenever nothing is ready it asks ``wait`` what to do.

    ``wait`` is given the seconds until the next timer, or None without one; it moves the clock, or
    stops the loop.
    """

    def __init__(self, clock: VirtualClock, wait: Wait) -> None:
        super().__init__(_WaitingSelector(wait))
        self._clock_of_ours = clock
        self._clock_resolution = RESOLUTION_SECONDS
        self.set_default_executor(_InlineExecutor(max_workers=1))

    def time(self) -> float:
        """The virtual time in seconds."""
        return self._clock_of_ours.monotonic()


class _WaitingSelector(selectors.SelectSelector):
    def __init__(self, wait: Wait) -> None:
        super().__init__()
        self._wait = wait

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout != 0:
            self._wait(timeout)
        return ready


class _InlineExecutor(ThreadPoolExecutor):
    """What ``asyncio.to_thread`` runs is run at once, in the test's own thread."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
            future.set_exception(error)
        return future


class InlineThreads(DaemonThreads):
    """Threads that are none: what they are given to do is done at once."""

    def __init__(self) -> None:
        super().__init__("latchwork-inline", 0)

    def submit(self, work: Callable[[], Any]) -> None:
        """Do ``work`` now."""
        work()
