"""Leases: kept while the loop is blocked, given up when lost, and one suspect at a time."""

import asyncio
import threading
import time
from datetime import timedelta

import pytest

from latchwork import CancelReason, JobContext, JobState, Latchwork
from latchwork.store import heartbeats
from latchwork.store.heartbeats import RenewalStatus
from tests.worker.conftest import PATIENCE_SECONDS, Start, happened, settled, states, view

S = JobState
LEASE_SECONDS = 1.5


def test_a_handler_that_blocks_the_event_loop_for_three_leases_loses_nobodys_lease(
    app: Latchwork, start: Start
) -> None:
    blocking = threading.Event()

    @app.job("block")
    async def block(context: JobContext) -> None:
        time.sleep(3 * LEASE_SECONDS)  # noqa: ASYNC251 - the mistake under test
        blocking.set()

    @app.job("beside")
    async def beside(context: JobContext) -> None:
        await happened(blocking)

    neighbours = app.client.enqueue_many([beside.bind()] * 3)
    worker = start(app, lease_seconds=LEASE_SECONDS)
    for job in neighbours:
        worker.signals.claimed.wait_blocking(job, timeout_seconds=PATIENCE_SECONDS)
    blocker = app.client.enqueue(block.bind())
    for job in (*neighbours, blocker):
        settled(worker, job)
        assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SUCCEEDED]


def lapse(app: Latchwork) -> None:
    """Let every lease end now, as a frozen node would find it."""

    def expire(connection: object) -> None:
        from sqlalchemy import update

        from latchwork.store.schema import jobs

        gone = app.database.clock.now() - timedelta(seconds=1)
        statement = update(jobs).where(jobs.c.state == S.LEASED).values(lease_expires_at=gone)
        connection.execute(statement)  # type: ignore[attr-defined]

    app.database.write(expire)


def test_a_lost_lease_stops_the_handler_and_its_end_is_never_reported(
    app: Latchwork, start: Start
) -> None:
    attempts: list[int] = []
    reasons: list[CancelReason | None] = []

    @app.job("frozen")
    async def frozen(context: JobContext) -> None:
        attempts.append(context.attempt)
        if context.attempt == 1:
            try:
                await asyncio.sleep(600)
            finally:
                reasons.append(context.cancellation.reason)

    job = app.client.enqueue(frozen.bind())
    worker = start(app, lease_seconds=3, heartbeat_seconds=0.2)
    worker.signals.claimed.wait_blocking(job, timeout_seconds=PATIENCE_SECONDS)
    lapse(app)
    worker.signals.lost.wait_blocking(job, timeout_seconds=PATIENCE_SECONDS)
    settled(worker, job)
    assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SCHEDULED, S.LEASED, S.SUCCEEDED]
    assert attempts == [1, 2]
    assert reasons == [CancelReason.LEASE_LOST]
    assert worker.signals.finished.count(job) == 1


@pytest.mark.parametrize("error", [MemoryError, OSError, RuntimeError])
def test_nothing_that_goes_wrong_in_a_heartbeat_ends_the_heartbeats(
    app: Latchwork, start: Start, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    finish = threading.Event()
    failures = iter([error(), error()])

    @app.job("long")
    async def long(context: JobContext) -> None:
        await happened(finish)

    real, renewed = heartbeats.renew, threading.Event()

    def renew(*args: object, **kwargs: object) -> object:
        failure = next(failures, None)
        if failure is not None:
            raise failure
        answers = real(*args, **kwargs)  # type: ignore[arg-type]
        if any(answer.status is RenewalStatus.RENEWED for answer in answers):
            renewed.set()
        return answers

    monkeypatch.setattr(heartbeats, "renew", renew)
    job = app.client.enqueue(long.bind())
    worker = start(app, lease_seconds=6, heartbeat_seconds=0.2)
    assert renewed.wait(PATIENCE_SECONDS)
    finish.set()
    settled(worker, job)
    assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SUCCEEDED]


def test_suspects_run_one_at_a_time_beside_other_jobs(app: Latchwork, start: Start) -> None:
    running: list[int] = []
    most = 0
    beside: list[int] = []

    @app.job("suspect")
    async def suspect(context: JobContext, n: int) -> None:
        nonlocal most
        running.append(n)
        most = max(most, len(running))
        await asyncio.sleep(0.05)
        running.remove(n)

    @app.job("honest")
    async def honest(context: JobContext) -> None:
        beside.append(len(running))

    jobs = app.client.enqueue_many([suspect.bind(n=n) for n in range(4)])

    def mark(connection: object) -> None:
        from sqlalchemy import update

        from latchwork.store import schema

        connection.execute(update(schema.jobs).values(lapses=2))  # type: ignore[attr-defined]

    app.database.write(mark)
    jobs += app.client.enqueue_many([honest.bind()] * 4)
    worker = start(app)
    for job in jobs:
        settled(worker, job)
        assert view(app, job).state is S.SUCCEEDED
    assert most == 1
    assert len(beside) == 4
