"""Worker nodes that tests start and that are always stopped again."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from latchwork import JobState, Latchwork
from latchwork.views import JobView
from latchwork.worker.worker import Worker

PATIENCE_SECONDS = 20.0
QUICK: dict[str, Any] = {
    "slots": 8,
    "poll_seconds": 0.05,
    "sweep_seconds": 0.05,
    "grace_seconds": 5,
}

Start = Callable[..., Worker]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a node of an application in a thread; it is drained when the test is over."""
    started: list[tuple[Latchwork, Worker, threading.Thread]] = []

    def begin(app: Latchwork, **options: Any) -> Worker:
        worker = app.worker(**{**QUICK, **options})
        thread = threading.Thread(target=worker.run)
        thread.start()
        started.append((app, worker, thread))
        return worker

    yield begin
    for _, worker, _ in started:
        worker.stop()
        worker.stop()
    for app, _, thread in started:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "the node did not stop"
        app.database.dispose()


def settled(worker: Worker, job_id: Any, *, times: int = 1) -> None:
    """Wait until the store has answered the ``times``-th outcome of a job."""
    worker.signals.finished.wait_blocking(job_id, timeout_seconds=PATIENCE_SECONDS, times=times)


def view(app: Latchwork, job_id: Any) -> JobView:
    """The job as it is stored."""
    found = app.monitor.job(job_id)
    assert found is not None
    return found


def states(app: Latchwork, job_id: Any) -> list[JobState]:
    """The states a job has passed through, by its log."""
    return [row.state for row in app.monitor.history(job_id).transitions]


async def happened(event: threading.Event) -> None:
    """Wait in an ``async`` handler for an event of another thread."""
    while not event.is_set():  # noqa: ASYNC110 - asyncio's own events are not for threads
        await asyncio.sleep(0.01)
