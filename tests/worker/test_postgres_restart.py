"""A node outlives its PostgreSQL: it goes on by itself, nothing is lost, nothing applied twice."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from latchwork import JobContext, JobState, Latchwork, OutcomeUnknown, StoreUnavailable
from latchwork.jobs import JobType
from tests.conftest import audit_after
from tests.postgres_server import PostgresInstance, postgres_database
from tests.worker.conftest import PATIENCE_SECONDS, Start, settled, states

S = JobState
BACK_SECONDS = 10.0
"""How soon after the database's return a node must work again."""
LOAD = {"slots": 8, "lease_seconds": 3, "sweep_seconds": 0.5}


def restart(server: PostgresInstance) -> None:
    server.stop_immediate()
    time.sleep(1)  # away long enough for every part of the node to meet it
    server.start()


def cut_off(server: PostgresInstance) -> None:
    server.terminate_backends()


Fault = Callable[[PostgresInstance], None]


@pytest.fixture
def app(request: pytest.FixtureRequest, own_postgres: PostgresInstance) -> Iterator[Latchwork]:
    """An application on a server that the test may stop, audited at the end."""
    with postgres_database(own_postgres.url) as url:
        app = Latchwork(url.render_as_string(hide_password=False))
        yield app
        app.database.dispose()
        audit_after(request, url)


class Witness:
    """A file to which every attempt that runs appends one line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def record(self, context: JobContext) -> None:
        os.write(self._file, f"{context.job_id} {context.attempt}\n".encode())

    def runs(self) -> Counter[tuple[UUID, int]]:
        """How often each attempt of each job ran."""
        lines = [line.split() for line in self._path.read_text().splitlines()]
        return Counter((UUID(job), int(attempt)) for job, attempt in lines)

    def close(self) -> None:
        os.close(self._file)


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    witness = Witness(tmp_path / "witness")
    yield witness
    witness.close()


class Enqueuer:
    """Enqueues without end in a thread; an answer that is lost is asked for again by the id."""

    def __init__(self, app: Latchwork, job_type: JobType[[], Any]) -> None:
        self._app = app
        self._job_type = job_type
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.accepted: list[UUID] = []

    def __enter__(self) -> "Enqueuer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_SECONDS)

    def _run(self) -> None:
        job_id = uuid7()
        while not self._stopping.wait(0.005):
            try:
                self._app.client.enqueue(self._job_type.bind(), job_id=job_id, exist_ok=True)
            except (OutcomeUnknown, StoreUnavailable):
                continue
            self.accepted.append(job_id)
            job_id = uuid7()


def wait_until_accepted(enqueuer: Enqueuer, count: int) -> UUID:
    """Wait until ``count`` more jobs are accepted; returns the last."""
    count += len(enqueuer.accepted)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(enqueuer.accepted) < count:
        assert time.monotonic() < deadline, "no job was accepted"
        time.sleep(0.01)
    return enqueuer.accepted[count - 1]


def wait_for_end(app: Latchwork, jobs: list[UUID]) -> None:
    """Wait until all have ended, also those whose claim or outcome was cut off."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for job in jobs:
        while states(app, job)[-1] is not S.SUCCEEDED:
            assert time.monotonic() < deadline, f"job {job} did not end: {states(app, job)}"
            time.sleep(0.02)


@pytest.mark.parametrize("fault", [restart, cut_off])
def test_a_node_goes_on_under_load_and_nothing_is_lost_or_applied_twice(
    app: Latchwork, own_postgres: PostgresInstance, start: Start, witness: Witness, fault: Fault
) -> None:
    @app.job("work")
    async def work(context: JobContext) -> None:
        witness.record(context)

    worker = start(app, **LOAD)
    with Enqueuer(app, work) as enqueuer:
        settled(worker, wait_until_accepted(enqueuer, 50))
        fault(own_postgres)
        back_at = time.monotonic()
        settled(worker, wait_until_accepted(enqueuer, 1))
        assert time.monotonic() - back_at < BACK_SECONDS
        settled(worker, wait_until_accepted(enqueuer, 50))
    wait_for_end(app, enqueuer.accepted)
    runs = witness.runs()
    assert {job for job, _ in runs} == set(enqueuer.accepted)
    assert set(runs.values()) == {1}, "an attempt ran twice"
    for job in enqueuer.accepted:
        assert states(app, job).count(S.SUCCEEDED) == 1


@pytest.mark.parametrize("fault", [restart, cut_off])
def test_hints_come_back_so_an_idle_node_hears_of_work_long_before_its_poll(
    app: Latchwork,
    own_postgres: PostgresInstance,
    start: Start,
    caplog: pytest.LogCaptureFixture,
    fault: Fault,
) -> None:
    @app.job("work")
    async def work(context: JobContext) -> None:
        pass

    worker = start(app, poll_seconds=30)
    settled(worker, app.client.enqueue(work.bind()))
    fault(own_postgres)
    with Enqueuer(app, work) as enqueuer:
        settled(worker, wait_until_accepted(enqueuer, 1))  # the listener says that it is back
    for job in enqueuer.accepted:
        settled(worker, job)
    begun_at = time.monotonic()
    for _ in range(5):
        settled(worker, app.client.enqueue(work.bind()))
    assert time.monotonic() - begun_at < BACK_SECONDS
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert errors == [], "a fault of the database is told as a warning in our own words"
