"""A store that fails never stops a node, and what was reported once is never applied twice."""

import threading

import pytest

from latchwork import JobContext, JobState, Latchwork, StoreUnavailable
from latchwork.store import claiming, outcomes
from latchwork.store.outcomes import Answer, AnswerStatus
from latchwork.worker import pump
from tests.worker.conftest import PATIENCE_SECONDS, Start, settled, states

S = JobState


def test_an_outcome_whose_answer_was_lost_is_reported_again_under_the_same_fence(
    app: Latchwork, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job("fine")
    async def fine(context: JobContext) -> None:
        context.set_output(context.attempt)

    answers: list[Answer] = []
    lost = threading.Event()
    real = pump.Pump._ask_report

    def lose_the_first(self: pump.Pump, reports: list[outcomes.Report]) -> list[Answer]:
        got = real(self, reports)
        answers.extend(got)
        if not lost.is_set():
            lost.set()
            raise StoreUnavailable("the connection broke after the commit")
        return got

    monkeypatch.setattr(pump.Pump, "_ask_report", lose_the_first)
    job = app.client.enqueue(fine.bind())
    settled(start(app), job)
    assert [answer.status for answer in answers] == [
        AnswerStatus.APPLIED, AnswerStatus.ALREADY_APPLIED,
    ]  # fmt: skip
    assert answers[1].state is S.SUCCEEDED
    assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SUCCEEDED]


def test_a_node_goes_on_when_claims_fail_for_a_while(
    app: Latchwork, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job("fine")
    async def fine(context: JobContext) -> None:
        pass

    failures = iter([StoreUnavailable("gone"), OSError("odd"), StoreUnavailable("gone")])
    real = claiming.claim

    def claim(*args: object, **kwargs: object) -> object:
        failure = next(failures, None)
        if failure is not None:
            raise failure
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(claiming, "claim", claim)
    job = app.client.enqueue(fine.bind())
    settled(start(app), job)
    assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SUCCEEDED]


def test_one_report_the_store_refuses_does_not_hold_back_the_others(
    app: Latchwork, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    @app.job("fine")
    def fine(context: JobContext, n: int) -> None:
        gate.wait(PATIENCE_SECONDS)
        context.set_output(n)

    real = outcomes.report_outcomes
    refused = threading.Event()

    def report(
        connection: object, worker_id: str, reports: list[outcomes.Report], **rest: object
    ) -> object:
        if any(one.output == "0" for one in reports):
            if len(reports) == 1:
                refused.set()
            raise ValueError("cannot be written")
        return real(connection, worker_id, reports, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(outcomes, "report_outcomes", report)
    jobs = app.client.enqueue_many([fine.bind(n=n) for n in range(4)])
    worker = start(app)
    for job in jobs:
        worker.signals.claimed.wait_blocking(job, timeout_seconds=PATIENCE_SECONDS)
    gate.set()
    for job in jobs[1:]:
        settled(worker, job)
        assert states(app, job)[-1] is S.SUCCEEDED
    assert refused.wait(PATIENCE_SECONDS)
