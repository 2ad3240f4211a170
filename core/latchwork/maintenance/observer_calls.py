"""Calling an observer's function where it can hold up nobody: in a thread that may be left behind.

A call has a time limit. An ``async`` function is cancelled at it; one that does not return all the
same, like a plain function, keeps its thread, and later calls get a new one.
"""

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

MAX_LEFT_BEHIND = 4
"""How many calls of an observer may go on past their time; no further one begins until one ends."""

TOGETHER_SECONDS = 1.0
"""After this long no further call of a round begins, so that what is done is settled soon."""

GRACE_SECONDS = 1.0
"""How long a cancelled call may take to end, and any call once its node stops."""

LOOK_SECONDS = 0.05
"""How often a waiting dispatcher looks at the call under way."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call to make. After one that failed, no other of its ``group`` is made in the round."""

    group: int
    work: Callable[[], Awaitable[None] | None]


class Round:
    """Calls that are made one after the other; ``results`` has each that ended, by its place.

    The result of a call is its error, or None. What is not there was not called, or does not count.
    """

    def __init__(self, calls: Sequence[Call], may_begin: Callable[[], bool]) -> None:
        self.results: dict[int, BaseException | None] = {}
        self.done = threading.Event()
        self._calls = calls
        self._may_begin = may_begin
        self._until = time.monotonic() + TOGETHER_SECONDS
        self._lock = threading.Lock()
        self._held_back: set[int] = set()
        self._closed = False
        self._current: int | None = None
        self._began = 0.0

    def run(self, make: Callable[[Call], BaseException | None]) -> None:
        """Make the calls, in the thread that may be left behind."""
        for place, call in enumerate(self._calls):
            if self._begin(place):
                self._end(place, make(call))
        self.done.set()

    def overdue(self, limit_seconds: float) -> bool:
        """Whether the call under way has taken longer than this."""
        with self._lock:
            took = time.monotonic() - self._began
            return self._current is not None and took > limit_seconds

    def close(self, error: BaseException | None) -> None:
        """Let nothing count any more; the call under way has failed with ``error``, if any."""
        with self._lock:
            self._closed = True
            if self._current is not None and error is not None:
                self.results[self._current] = error

    def _begin(self, place: int) -> bool:
        group = self._calls[place].group
        with self._lock:
            over = self._closed or time.monotonic() > self._until or not self._may_begin()
            if over or group in self._held_back:
                self._held_back.add(group)
                return False
            self._current, self._began = place, time.monotonic()
            return True

    def _end(self, place: int, error: BaseException | None) -> None:
        with self._lock:
            self._current = None
            if self._closed:
                return
            self.results[place] = error
            if error is not None:
                self._held_back.add(self._calls[place].group)


class Calls:
    """Makes the calls of one observer."""

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

    def make(self, calls: Sequence[Call], may_begin: Callable[[], bool]) -> Round:
        """Make ``calls``, as many as there is time for, and wait for the last one's end.

        No call begins once ``may_begin`` says no. A call that does not end in time has failed; one
        that is under way when the node stops is as if it had not begun.
        """
        if self._lane is None:
            self._lane = _Lane(self._name, self._limit_seconds)
        made = Round(calls, lambda: may_begin() and not self._stopping.is_set())
        self._lane.take(made)
        while not made.done.wait(LOOK_SECONDS):
            if self._stopping.is_set():
                if not made.done.wait(GRACE_SECONDS):
                    self._leave_behind(made, None)
                break
            if made.overdue(self._limit_seconds + GRACE_SECONDS):
                self._leave_behind(made, _too_late(self._limit_seconds))
                break
        return made

    def close(self) -> None:
        """Let the thread end once it has nothing to do."""
        if self._lane is not None:
            self._lane.close()

    def _leave_behind(self, made: Round, error: BaseException | None) -> None:
        made.close(error)
        if self._lane is not None:
            self._left_behind.append(self._lane)
            self._lane.close()
            self._lane = None


class _Lane:
    """A daemon thread with an event loop, which makes one call at a time."""

    def __init__(self, name: str, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        self._rounds: SimpleQueue[Round | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=self._serve, name=f"latchwork-observer-{name}", daemon=True
        )
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether its last call goes on."""
        return self._thread.is_alive()

    def take(self, given: Round) -> None:
        """Begin with a round as soon as it is free."""
        self._rounds.put(given)

    def close(self) -> None:
        """End after the call under way."""
        self._rounds.put(None)

    def _serve(self) -> None:
        with asyncio.Runner() as runner:

            def make(call: Call) -> BaseException | None:
                try:
                    result = call.work()
                    if inspect.isawaitable(result):
                        runner.run(_limited(result, self._limit_seconds))
                except BaseException as error:  # noqa: BLE001 - whatever it raises, others go on
                    return error
                return None

            while (given := self._rounds.get()) is not None:
                given.run(make)


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
