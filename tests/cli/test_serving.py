"""``latchwork worker``, ``console`` and ``run`` stay up, do their work, and end when told to."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from uuid import UUID

import httpx2
import pytest

from latchwork import JobState, Latchwork
from tests.store.builders import Store

Start = Callable[..., "subprocess.Popen[str]"]
PATIENCE_SECONDS = 30


def outputs(app: Latchwork, job_ids: list[UUID]) -> list[str | None]:
    """Wait until these jobs have succeeded; the log says when."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        jobs = [app.monitor.job(job_id) for job_id in job_ids]
        if all(job is not None and job.state is JobState.SUCCEEDED for job in jobs):
            return [app.monitor.output(job_id).output for job_id in job_ids]
        assert time.monotonic() < deadline, jobs
        time.sleep(0.05)


def address(process: "subprocess.Popen[str]") -> str:
    """Where the console says that it is."""
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found
    return found[0]


def end(process: "subprocess.Popen[str]", number: signal.Signals = signal.SIGTERM) -> int:
    """Tell a process to end, and wait for its exit code."""
    process.send_signal(number)
    return process.wait(timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_runs_jobs_and_ends_cleanly(
    start: Start, app: Latchwork, store: Store, number: signal.Signals
) -> None:
    job_id = store.enqueue(wire_name="greet", queue="default", payload='{"name":"you"}')
    process = start("worker", "shop:app", "--slots", "2", "--lease-seconds", "30")
    assert outputs(app, [job_id]) == ['{"hello":"you"}']
    assert end(process, number) == 0


def test_a_worker_serves_the_queues_it_is_given(start: Start, app: Latchwork, store: Store) -> None:
    job_id = store.enqueue(wire_name="greet", queue="mail", payload='{"name":"you"}')
    process = start("worker", "shop:app", "--queues", "mail, parcels")
    outputs(app, [job_id])
    [node] = app.monitor.nodes()
    assert node.queues == ("mail", "parcels")
    assert end(process) == 0


def test_several_processes_are_several_nodes_and_a_dead_one_is_replaced(
    start: Start, app: Latchwork
) -> None:
    process = start("worker", "shop:app", "--processes", "2")
    first = _pids(app, 2)
    os.kill(min(first), signal.SIGKILL)
    later = _pids(app, 3)
    assert len(later - first) == 1
    assert end(process) == 0


def test_the_console_answers_until_it_is_told_to_end(start: Start, app: Latchwork) -> None:
    process = start("console", "shop:app", "--port", "0")
    assert httpx2.get(f"{address(process)}/health").status_code == 200
    assert end(process) == 0


def test_run_is_a_node_and_a_console(start: Start, app: Latchwork, store: Store) -> None:
    process = start("run", "shop:app", "--port", "0")
    where = address(process)
    job_id = store.enqueue(wire_name="greet", queue="default", payload='{"name":"you"}')
    outputs(app, [job_id])
    job = httpx2.get(f"{where}/jobs/{job_id}", headers={"Accept": "application/json"}).json()
    assert (job["id"], job["state"]) == (str(job_id), "succeeded")
    assert end(process) == 0


def test_a_taken_port_is_told_before_the_node_starts(start: Start, app: Latchwork) -> None:
    taken = address(start("console", "shop:app", "--port", "0"))
    process = start("run", "shop:app", "--port", taken.rpartition(":")[2])
    assert process.wait(timeout=PATIENCE_SECONDS) == 1
    assert app.monitor.nodes() == ()


def _pids(app: Latchwork, count: int) -> set[int]:
    """Wait until so many nodes have been seen; the processes they are."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(nodes := app.monitor.nodes()) < count:
        assert time.monotonic() < deadline, nodes
        time.sleep(0.05)
    return {node.pid for node in nodes}
