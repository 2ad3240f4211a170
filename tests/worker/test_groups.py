"""Several workers in one process: each keeps to its slots, all end together."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from latchwork import JobContext, JobState, Latchwork
from latchwork.worker.groups import run_together
from latchwork.worker.worker import Worker
from tests.worker.conftest import PATIENCE_SECONDS, QUICK, settled, view

PROGRAM = """
import os
from latchwork import JobContext, Latchwork

app = Latchwork(os.environ["LATCHWORK_DATABASE_URL"])

@app.job("pid", queue="fast")
def pid(context: JobContext) -> None:
    context.set_output(os.getpid())

if __name__ == "__main__":
    app.client.enqueue(pid.bind())
    app.client.enqueue(pid.bind(), queue="slow")
    print("started", flush=True)
    app.run(app.worker(queues=["fast"], slots=1), app.worker(queues={"slow": 1}, slots=2))
    print("drained", flush=True)
"""


def test_a_slow_group_takes_no_slot_of_the_other(app: Latchwork) -> None:
    let_go = threading.Event()

    @app.job("slow", queue="slow")
    def slow(_context: JobContext) -> None:
        let_go.wait(PATIENCE_SECONDS)

    @app.job("fast", queue="fast")
    def fast(_context: JobContext) -> None:
        return

    workers = [
        app.worker(**{**QUICK, "slots": 2}, queues=["slow"]),
        app.worker(**{**QUICK, "slots": 1}, queues=["fast"]),
    ]
    running = threading.Thread(target=app.run, args=workers)
    running.start()
    held = [app.client.enqueue(slow.bind()) for _ in range(5)]
    for job_id in [app.client.enqueue(fast.bind()) for _ in range(3)]:
        settled(workers[1], job_id)
        assert view(app, job_id).owner is None
    assert sum(view(app, one).state is JobState.LEASED for one in held) <= 2
    let_go.set()
    for job_id in held:
        settled(workers[0], job_id)
    assert len({node.worker_id for node in app.monitor.nodes()}) == 2
    for worker in workers:
        worker.stop()
    running.join(PATIENCE_SECONDS)
    assert not running.is_alive()


class Failing:
    """A worker that cannot start."""

    patience_seconds = 0.0

    def run(self) -> None:
        raise ValueError("no such database")

    def stop(self) -> None:
        return


def test_when_one_fails_the_others_drain_and_its_error_is_raised(app: Latchwork) -> None:
    other: Worker = app.worker(**QUICK)
    with pytest.raises(ValueError, match="no such database"):
        run_together([other, Failing()])
    assert not [one for one in threading.enumerate() if one.name.startswith("latchwork-group")]


def test_a_signal_drains_every_group(database_url: str, tmp_path: Path) -> None:
    program = tmp_path / "groups.py"
    program.write_text(PROGRAM)
    app = Latchwork(database_url)
    with subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"LATCHWORK_DATABASE_URL": database_url},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        waiting = threading.Event()
        for _ in range(400):
            if app.monitor.counts().by_state[JobState.SUCCEEDED] == 2:
                break
            waiting.wait(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "drained\n"
        assert process.wait(PATIENCE_SECONDS) == 0
    assert {job.state for job in app.monitor.jobs().jobs} == {JobState.SUCCEEDED}
    assert [node.live for node in app.monitor.nodes()] == [False, False]
