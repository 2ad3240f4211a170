"""How a node ends: drained, interrupted, or killed (contract section 4, Shutdown)."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from latchwork import CancelReason, JobContext, JobState, Latchwork
from tests.worker.conftest import PATIENCE_SECONDS, QUICK, Start, happened, settled, states, view

S = JobState

NODE = """
import asyncio, sys, threading, time
from pathlib import Path
from latchwork import Latchwork

url, started, options = sys.argv[1], Path(sys.argv[2]), eval(sys.argv[3])
app = Latchwork(url)

def begun(context):
    (started / str(context.job_id)).touch()

@app.job("wait")
async def wait(context, seconds: float):
    begun(context)
    await asyncio.sleep(seconds)

@app.job("ignore")
async def ignore(context):
    begun(context)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

@app.job("thread")
def thread(context):
    begun(context)
    time.sleep(600)

@app.job("to-thread")
async def to_thread(context):
    begun(context)
    await asyncio.to_thread(time.sleep, 600)

@app.job("block")
async def block(context):
    begun(context)
    time.sleep(600)

if __name__ == "__main__":
    app.worker(**options).run()
    print("clean")
"""

Node = subprocess.Popen[str]
StartProcess = Callable[..., Node]


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """Where handlers in other processes leave a file named like their job."""
    folder = tmp_path / "begun"
    folder.mkdir()
    return folder


@pytest.fixture
def process(database_url: str, tmp_path: Path, begun: Path) -> Iterator[StartProcess]:
    """Start a node in a process of its own."""
    script = tmp_path / "node.py"
    script.write_text(NODE)
    running: list[Node] = []

    def begin(**options: object) -> Node:
        given = repr({**QUICK, **options})
        command = [sys.executable, str(script), database_url, str(begun), given]
        node = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(node)
        return node

    yield begin
    for node in running:
        node.kill()
        node.communicate()


def enqueue(app: Latchwork, wire_name: str, count: int = 1, **arguments: object) -> list[UUID]:
    """Enqueue jobs of a type that only the other process knows."""

    def handler(context: JobContext, seconds: float | None = None) -> None: ...

    job_type = app.job_types.get(wire_name) or app.job(wire_name)(handler)
    return app.client.enqueue_many([job_type.bind(**arguments)] * count)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def all_begun(begun: Path, jobs: list[UUID]) -> Callable[[], bool]:
    return lambda: all((begun / str(job)).exists() for job in jobs)


def test_after_a_stop_running_jobs_finish_and_nothing_new_is_claimed(
    app: Latchwork, start: Start
) -> None:
    finish = threading.Event()

    @app.job("long")
    async def long(context: JobContext) -> None:
        await happened(finish)

    running = app.client.enqueue(long.bind())
    worker = start(app)
    worker.signals.claimed.wait_blocking(running, timeout_seconds=PATIENCE_SECONDS)
    worker.stop()
    late = app.client.enqueue(long.bind())
    finish.set()
    settled(worker, running)
    assert view(app, running).state is S.SUCCEEDED
    assert states(app, late) == [S.SCHEDULED]


def test_after_the_grace_time_a_heeding_handler_is_let_go_and_runs_again_elsewhere(
    app: Latchwork, start: Start
) -> None:
    reasons: list[CancelReason | None] = []

    @app.job("long")
    async def long(context: JobContext) -> None:
        if context.attempt == 1:
            try:
                await asyncio.sleep(600)
            finally:
                reasons.append(context.cancellation.reason)

    job = app.client.enqueue(long.bind())
    first = start(app, grace_seconds=0.1)
    first.signals.claimed.wait_blocking(job, timeout_seconds=PATIENCE_SECONDS)
    first.stop()
    second = start(app)
    settled(second, job)
    assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SCHEDULED, S.LEASED, S.SUCCEEDED]
    assert reasons == [CancelReason.SHUTDOWN]
    assert first.signals.finished.count(job) == 0


def test_a_cancel_that_was_also_asked_for_is_reported_at_shutdown(
    app: Latchwork, start: Start
) -> None:
    @app.job("long", interrupt=False)
    async def long(context: JobContext) -> None:
        while CancelReason.SHUTDOWN not in context.cancellation.reasons:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        context.cancellation.raise_if_requested()

    job = app.client.enqueue(long.bind())
    worker = start(app, grace_seconds=1, lease_seconds=3, heartbeat_seconds=0.1)
    worker.signals.claimed.wait_blocking(job, timeout_seconds=PATIENCE_SECONDS)
    app.operator.cancel(job, actor="ada")
    wait_until(lambda: view(app, job).cancel_delivered_at is not None)
    worker.stop()
    settled(worker, job)
    assert view(app, job).state is S.CANCELLED


def test_a_stop_before_the_start_is_not_forgotten(app: Latchwork) -> None:
    worker = app.worker(**QUICK)
    worker.stop()
    worker.run()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_the_node_and_the_process_ends_with_code_0(
    app: Latchwork, process: StartProcess, begun: Path, number: signal.Signals
) -> None:
    jobs = enqueue(app, "wait", 3, seconds=0.5)
    node = process()
    wait_until(all_begun(begun, jobs))
    node.send_signal(number)
    assert node.wait(PATIENCE_SECONDS) == 0
    assert [view(app, job).state for job in jobs] == [S.SUCCEEDED] * 3
    [shown] = app.monitor.nodes()
    assert shown.stopped_at is not None


@pytest.mark.parametrize("wire_name", ["ignore", "thread", "to-thread", "block"])
def test_a_handler_that_ignores_its_token_does_not_keep_the_process(
    app: Latchwork, process: StartProcess, begun: Path, wire_name: str
) -> None:
    jobs = enqueue(app, wire_name)
    node = process(grace_seconds=0.1)
    wait_until(all_begun(begun, jobs))
    node.send_signal(signal.SIGTERM)
    assert node.wait(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("delay_seconds", [0.3, 0.6, 0.9, 1.2, 1.5])
def test_a_signal_during_the_start_ends_the_process(
    process: StartProcess, delay_seconds: float
) -> None:
    node = process()
    time.sleep(delay_seconds)
    node.send_signal(signal.SIGTERM)
    assert node.wait(PATIENCE_SECONDS) in (0, -signal.SIGTERM)


def test_the_jobs_of_a_killed_node_finish_on_another_after_the_lease(
    app: Latchwork, process: StartProcess, start: Start, begun: Path
) -> None:
    jobs = enqueue(app, "wait", 50, seconds=600)
    node = process(slots=50, lease_seconds=2)
    wait_until(all_begun(begun, jobs))
    node.kill()
    survivor = start(app, slots=50)
    for job in jobs:
        settled(survivor, job)
        assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SCHEDULED, S.LEASED, S.SUCCEEDED]
