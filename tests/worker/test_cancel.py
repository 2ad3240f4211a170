"""Cancelling what runs: asked, delivered by a heartbeat, stopped by the handler (section 2)."""

import asyncio
import threading

import pytest

from latchwork import CancelReason, JobContext, JobState, Latchwork, RetryPolicy
from latchwork.worker.worker import Worker
from tests.worker.conftest import PATIENCE_SECONDS, Start, happened, settled, states, view

S = JobState
QUICK_LEASE = {"lease_seconds": 3, "heartbeat_seconds": 0.1}


def claimed(worker: Worker, job_id: object) -> None:
    worker.signals.claimed.wait_blocking(job_id, timeout_seconds=PATIENCE_SECONDS)  # type: ignore[arg-type]


@pytest.mark.parametrize("slots", [1, 8])
def test_an_async_handler_is_interrupted_and_its_job_cancelled(
    app: Latchwork, start: Start, slots: int
) -> None:
    @app.job("long")
    async def long(context: JobContext) -> None:
        await asyncio.sleep(600)

    job = app.client.enqueue(long.bind())
    worker = start(app, slots=slots, **QUICK_LEASE)
    claimed(worker, job)
    app.operator.cancel(job, actor="ada")
    settled(worker, job)
    stored = view(app, job)
    assert states(app, job) == [S.SCHEDULED, S.LEASED, S.CANCELLED]
    assert stored.cause is not None
    assert stored.cause.text == "ada"
    assert stored.cancel_requested_at is not None
    assert stored.cancel_delivered_at is not None
    assert stored.cancel_requested_at <= stored.cancel_delivered_at


def test_a_plain_handler_stops_when_it_looks_at_its_token(app: Latchwork, start: Start) -> None:
    reasons: list[CancelReason | None] = []

    @app.job("long")
    def long(context: JobContext) -> None:
        context.cancellation.wait_blocking(PATIENCE_SECONDS)
        reasons.append(context.cancellation.reason)
        context.cancellation.raise_if_requested()

    job = app.client.enqueue(long.bind())
    worker = start(app, **QUICK_LEASE)
    claimed(worker, job)
    app.operator.cancel(job, actor="ada")
    settled(worker, job)
    assert view(app, job).state is S.CANCELLED
    assert reasons == [CancelReason.OPERATOR_CANCEL]


def test_without_interrupt_an_async_handler_decides_when_to_stop(
    app: Latchwork, start: Start
) -> None:
    @app.job("long", interrupt=False)
    async def long(context: JobContext) -> None:
        await context.cancellation.wait()
        await asyncio.sleep(0.01)
        context.cancellation.raise_if_requested()

    job = app.client.enqueue(long.bind())
    worker = start(app, **QUICK_LEASE)
    claimed(worker, job)
    app.operator.cancel(job, actor="ada")
    settled(worker, job)
    assert view(app, job).state is S.CANCELLED


def test_returning_normally_after_the_token_fired_is_a_success(
    app: Latchwork, start: Start
) -> None:
    @app.job("stubborn")
    async def stubborn(context: JobContext) -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            context.set_output("done all the same")

    job = app.client.enqueue(stubborn.bind())
    worker = start(app, **QUICK_LEASE)
    claimed(worker, job)
    app.operator.cancel(job, actor="ada")
    settled(worker, job)
    assert view(app, job).state is S.SUCCEEDED
    assert app.monitor.output(job).output == '"done all the same"'


def test_a_failure_after_a_request_is_retried_and_cancelled_at_the_same_instant(
    app: Latchwork, start: Start
) -> None:
    @app.job("failing", interrupt=False)
    async def failing(context: JobContext) -> None:
        await context.cancellation.wait()
        raise ValueError

    job = app.client.enqueue(failing.bind())
    worker = start(app, **QUICK_LEASE)
    claimed(worker, job)
    app.operator.cancel(job, actor="ada")
    settled(worker, job)
    assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SCHEDULED, S.CANCELLED]
    rows = app.monitor.history(job).transitions
    assert rows[-1].at == rows[-2].at


def test_a_failure_at_the_ceiling_after_a_request_dead_letters_only(
    app: Latchwork, start: Start
) -> None:
    @app.job("failing", interrupt=False, retry=RetryPolicy(max_attempts=1))
    async def failing(context: JobContext) -> None:
        await context.cancellation.wait()
        raise ValueError

    job = app.client.enqueue(failing.bind())
    worker = start(app, **QUICK_LEASE)
    claimed(worker, job)
    app.operator.cancel(job, actor="ada")
    settled(worker, job)
    assert states(app, job) == [S.SCHEDULED, S.LEASED, S.DEAD_LETTERED]


def test_a_cancel_does_not_disturb_the_jobs_beside_it(app: Latchwork, start: Start) -> None:
    finish = threading.Event()

    @app.job("long")
    async def long(context: JobContext) -> None:
        await happened(finish)

    first, second = app.client.enqueue_many([long.bind(), long.bind()])
    worker = start(app, **QUICK_LEASE)
    for job in (first, second):
        claimed(worker, job)
    app.operator.cancel(first, actor="ada")
    settled(worker, first)
    finish.set()
    settled(worker, second)
    assert (view(app, first).state, view(app, second).state) == (S.CANCELLED, S.SUCCEEDED)
