"""Calling an observer's function where it can hold up nobody: in a thread that may be left behind.

A call has a time limit. An ``async`` function is cancelled at it; one that does not return all the
same, like a plain function, keeps its thread, and the next call gets a new one.
"""

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from queue import SimpleQueue

Work = Callable[[], Awaitable[None] | None]

MAX_LEFT_BEHIND = 4
"""How many calls of an observer may go on past their time; no further one begins until one ends."""

GRACE_SECONDS = 1.0
"""How long a cancelled call may take to end, and any call once its node stops."""

LOOK_SECONDS = 0.05
"""How often a waiting dispatcher looks whether its node stops."""


class NodeStops(Exception):
    """The node stops while a call goes on: it has neither succeeded nor failed."""


class Calls:
    """Makes the calls of one observer, one after the other."""

    def __init__(self, name: str, stopping: threading.Event, *, limit_seconds: float) -> None:
        self._name = name
        self._stopping = stopping
        self._limit_seconds = limit_seconds
        self._lane: _Lane | None = None
        self._left_behind: list[_Lane] = []

    @property
    def blocked(self) -> bool:
        """Whether so many calls hang that no further one may begin."""
        self._left_behind = [lane for lane in self._left_behind if lane.alive]
        return len(self._left_behind) >= MAX_LEFT_BEHIND

    def make(self, work: Work) -> None:
        """Call ``work`` and wait for its end.

        Raises what it raised; TimeoutError at its limit; NodeStops when there is no time left.
        """
        if self._lane is None:
            self._lane = _Lane(self._name)
        ended = self._lane.call(work, self._limit_seconds)
        if not self._wait(ended):
            self._left_behind.append(self._lane)
            self._lane.close()
            self._lane = None
            if self._stopping.is_set():
                raise NodeStops
            raise _too_late(self._limit_seconds)
        ended.result()

    def close(self) -> None:
        """Let the thread end once it has nothing to do."""
        if self._lane is not None:
            self._lane.close()

    def _wait(self, ended: "Future[None]") -> bool:
        done = threading.Event()
        ended.add_done_callback(lambda _: done.set())
        deadline = time.monotonic() + self._limit_seconds + GRACE_SECONDS
        while not done.wait(LOOK_SECONDS):
            if self._stopping.is_set():
                return done.wait(GRACE_SECONDS)
            if time.monotonic() > deadline:
                return False
        return True


class _Lane:
    """A daemon thread with an event loop, which makes one call at a time."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[tuple[Work, float, Future[None]] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=self._serve, name=f"latchwork-observer-{name}", daemon=True
        )
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether its last call goes on."""
        return self._thread.is_alive()

    def call(self, work: Work, limit_seconds: float) -> "Future[None]":
        """Call ``work``; the future tells its end."""
        ended: Future[None] = Future()
        self._work.put((work, limit_seconds, ended))
        return ended

    def close(self) -> None:
        """End after the call under way."""
        self._work.put(None)

    def _serve(self) -> None:
        with asyncio.Runner() as runner:
            while (given := self._work.get()) is not None:
                work, limit_seconds, ended = given
                try:
                    result = work()
                    if inspect.isawaitable(result):
                        runner.run(_limited(result, limit_seconds))
                except BaseException as error:  # noqa: BLE001 - whoever waits is told
                    ended.set_exception(error)
                else:
                    ended.set_result(None)


async def _limited(result: Awaitable[None], limit_seconds: float) -> None:
    limit = asyncio.timeout(limit_seconds)
    try:
        async with limit:
            await result
    except TimeoutError as late:
        if limit.expired():
            raise _too_late(limit_seconds) from late
        raise


def _too_late(limit_seconds: float) -> TimeoutError:
    return TimeoutError(f"it took longer than {limit_seconds:g} seconds")
