"""Threads that never keep the process alive.

The standard library's pool waits for its threads when the process ends; a handler that never
returns would hold the process for ever.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads:
    """A pool of at most ``size`` threads, started when they are needed."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._started = 0
        self._starting = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work`` in a thread as soon as one is free."""
        self._work.put(work)
        if self._idle.acquire(blocking=False):
            return
        with self._starting:
            if self._started == self._size:
                return
            self._started += 1
            name = f"{self._name}-{self._started}"
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def close(self) -> None:
        """Let the threads end once they have nothing to do."""
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self) -> None:
        while True:
            try:
                work = self._work.get_nowait()
            except Empty:
                self._idle.release()
                work = self._work.get()
            if work is None:
                return
            try:
                work()
            except Exception:
                logger.exception("A thread of %s met an unexpected error", self._name)


class DaemonExecutor(ThreadPoolExecutor):
    """A pool for an event loop's ``run_in_executor`` and ``asyncio.to_thread``."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._threads_of_ours = DaemonThreads("latchwork-executor", size)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``fn`` in a thread; its answer comes through the future."""
        future: Future[T] = Future()
        self._threads_of_ours.submit(partial(_fulfil, future, partial(fn, *args, **kwargs)))
        return future


def _fulfil(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
        future.set_exception(error)


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """The result of ``work``, done in a thread of its own that nobody need wait for."""
    future: Future[T] = Future()
    threading.Thread(target=_fulfil, args=(future, work), daemon=True).start()
    return await asyncio.wrap_future(future)
