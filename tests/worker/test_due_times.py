"""Work that becomes due later starts when it is due, not at the next poll."""

import time
from datetime import UTC, datetime, timedelta

from latchwork import JobContext, Latchwork, Retry
from tests.worker.conftest import Start, settled

LATE_SECONDS = 0.2
UNHURRIED = {"poll_seconds": 30}


def test_a_job_due_in_a_moment_starts_when_it_is_due(app: Latchwork, start: Start) -> None:
    started: list[datetime] = []

    @app.job("later")
    async def later(context: JobContext) -> None:
        started.append(datetime.now(UTC))

    worker = start(app, **UNHURRIED)
    settled(worker, app.client.enqueue(later.bind()))
    due_at = datetime.now(UTC) + timedelta(seconds=0.3)
    settled(worker, app.client.enqueue(later.bind(), due_at=due_at))
    assert timedelta() <= started[-1] - due_at < timedelta(seconds=LATE_SECONDS)


def test_a_job_that_was_waiting_when_the_node_started_starts_when_it_is_due(
    app: Latchwork, start: Start
) -> None:
    started: list[datetime] = []

    @app.job("later")
    async def later(context: JobContext) -> None:
        started.append(datetime.now(UTC))

    due_at = datetime.now(UTC) + timedelta(seconds=1)
    job = app.client.enqueue(later.bind(), due_at=due_at)
    settled(start(app, **UNHURRIED), job)
    assert timedelta() <= started[-1] - due_at < timedelta(seconds=LATE_SECONDS)


def test_a_retry_starts_when_its_back_off_is_over(app: Latchwork, start: Start) -> None:
    started: list[float] = []

    @app.job("flaky")
    async def flaky(context: JobContext) -> None:
        started.append(time.monotonic())
        if context.attempt == 1:
            raise Retry(after=0.3)

    worker = start(app, **UNHURRIED)
    settled(worker, app.client.enqueue(flaky.bind()), times=2)
    assert 0.3 <= started[1] - started[0] < 0.3 + LATE_SECONDS
