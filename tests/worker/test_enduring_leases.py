"""What lives keeps its lease, whatever its age; what died gives it up, whatever its name."""

import threading
import time

import pytest
from sqlalchemy import create_engine, text

from latchwork import CancelReason, JobContext, JobState, Latchwork
from tests.worker.conftest import PATIENCE_SECONDS, Start, settled, states, view

S = JobState


def test_a_job_that_outlives_its_lease_ten_times_over_runs_once(
    app: Latchwork, start: Start
) -> None:
    attempts: list[int] = []

    @app.job("long")
    def long(context: JobContext) -> None:
        attempts.append(context.attempt)
        context.cancellation.wait_blocking(timeout_seconds=5)

    job = app.client.enqueue(long.bind())
    settled(start(app, lease_seconds=0.5), job)
    assert attempts == [1]
    assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SUCCEEDED]


def test_a_node_with_its_only_slot_taken_still_delivers_a_cancel(
    app: Latchwork, start: Start
) -> None:
    @app.job("long")
    def long(context: JobContext) -> None:
        context.cancellation.wait_blocking(timeout_seconds=PATIENCE_SECONDS)
        context.cancellation.raise_if_requested()

    job = app.client.enqueue(long.bind())
    node = start(app, slots=1, lease_seconds=1.5)
    node.signals.claimed.wait_blocking(job, timeout_seconds=PATIENCE_SECONDS)
    app.operator.cancel(job, actor="ann")
    settled(node, job)
    found = view(app, job)
    assert found.state is S.CANCELLED
    assert found.cancel_delivered_at is not None


def test_a_node_kept_from_its_file_for_three_leases_gives_up_its_jobs_and_works_on(
    sqlite_url: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATCHWORK_SQLITE_BUSY_SECONDS", "0.2")
    app = Latchwork(sqlite_url)
    running, reasons = threading.Event(), []

    @app.job("steady")
    def steady(context: JobContext) -> None:
        if context.attempt == 1:
            running.set()
            context.cancellation.wait_blocking(timeout_seconds=PATIENCE_SECONDS)
            reasons.append(context.cancellation.reason)

    lease_seconds = 0.6
    job = app.client.enqueue(steady.bind())
    node = start(app, lease_seconds=lease_seconds)
    assert running.wait(PATIENCE_SECONDS)
    other = create_engine(sqlite_url)
    with other.connect() as connection:
        connection.execute(text("BEGIN IMMEDIATE"))
        time.sleep(3 * lease_seconds)  # the fault under test: nobody else may write
        connection.rollback()
    other.dispose()
    later = app.client.enqueue(steady.bind())
    node.signals.claimed.wait_blocking(later, timeout_seconds=PATIENCE_SECONDS)
    app.operator.cancel(later, actor="ann")
    settled(node, job)
    settled(node, later)
    assert reasons[0] is CancelReason.LEASE_LOST
    assert view(app, job).state is S.SUCCEEDED
    assert view(app, job).claim_number >= 2
