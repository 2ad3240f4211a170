"""Two that act on one job at the same instant: one of them wins, whole, and the other is told."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, select

from latchwork.action_results import CancelOutcome
from latchwork.decisions.states import JobState
from latchwork.store import expiry, schema
from latchwork.store.enqueueing import insert_jobs
from latchwork.store.expiry import LapseVerdict
from latchwork.store.outcomes import AnswerStatus, OutcomeKind, Report, report_outcomes
from tests.store.builders import LEASE_SECONDS, ON_ANY_TERMINAL, WORKER, Store

S = JobState
ROUNDS = 25


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """The answers of all ``acts``, begun together."""
    barrier = threading.Barrier(len(acts))

    def begin(act: Callable[[], Any]) -> Any:
        barrier.wait(10)
        return act()

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(begin, acts))


def exits(store: Store, job_id: Any) -> list[JobState]:
    """Where the job went each time it was Leased no longer."""
    return [row.state for row in store.log(job_id) if row.previous_state is S.LEASED]


def test_of_an_outcome_and_a_sweep_at_once_exactly_one_ends_the_attempt(store: Store) -> None:
    ended = set()
    for _ in range(ROUNDS):
        job_id = store.in_state(S.LEASED)
        hold = store.hold(job_id)
        before = store.now
        store.wait(LEASE_SECONDS)
        verdicts = [LapseVerdict(job, store.now) for job in store.lapsed()]

        report = [Report(hold, OutcomeKind.SUCCESS)]
        write = store.database.write
        (answer,), swept = at_once(
            partial(write, report_outcomes, WORKER, report, now=before, wait=True),
            partial(write, expiry.expire, verdicts, now=store.now),
        )
        status = answer.status
        assert (status, swept) in {(AnswerStatus.APPLIED, 0), (AnswerStatus.STALE, 1)}
        assert len(exits(store, job_id)) == 1
        ended.add(status)
        if swept:
            store.end(job_id)
    assert ended, "no round was played"


def test_of_a_cancel_and_a_success_at_once_the_children_follow_the_one_that_stood(
    store: Store,
) -> None:
    for _ in range(ROUNDS):
        parent = store.in_state(S.LEASED)
        child = store.enqueue(parent)
        hold = store.hold(parent)

        (answer,), cancelled = at_once(
            partial(store.report, Report(hold, OutcomeKind.SUCCESS), wait=True),
            partial(store.cancel, parent),
        )
        assert answer.status is AnswerStatus.APPLIED
        assert cancelled.outcome in {CancelOutcome.REQUESTED, CancelOutcome.REFUSED}
        assert store.states(parent, child) == [S.SUCCEEDED, S.SCHEDULED]


def test_of_a_cancel_and_a_claim_at_once_a_job_is_cancelled_or_leased_never_both(
    store: Store,
) -> None:
    met = set()
    for _ in range(ROUNDS):
        parent = store.enqueue()
        child = store.enqueue(parent)
        queue = store.row(parent).queue
        claimed, answer = at_once(partial(store.claim, queue), partial(store.cancel, parent))
        cancelled = answer.outcome
        met.add(cancelled)
        if cancelled is CancelOutcome.CANCELLED:
            assert claimed == []
            assert store.states(parent, child) == [S.CANCELLED, S.CANCELLED]
        else:
            assert cancelled is CancelOutcome.REQUESTED
            assert [job.id for job in claimed] == [parent]
            assert store.states(parent, child) == [S.LEASED, S.AWAITING_PARENT]
    assert met <= {CancelOutcome.CANCELLED, CancelOutcome.REQUESTED}


@pytest.mark.parametrize("kind", [OutcomeKind.SUCCESS, OutcomeKind.FAILURE])
def test_sixteen_parents_that_end_at_once_release_their_child_once(
    store: Store, kind: OutcomeKind
) -> None:
    for _ in range(5):
        parents = [store.in_state(S.LEASED) for _ in range(16)]
        child = store.enqueue(*parents, mode=ON_ANY_TERMINAL)
        reports = [Report(store.hold(parent), kind) for parent in parents]
        answers = at_once(*(partial(store.report, report, wait=True) for report in reports))
        assert {answer.status for (answer,) in answers} == {AnswerStatus.APPLIED}
        assert store.state(child) is S.SCHEDULED
        assert [row.state for row in store.log(child)] == [S.AWAITING_PARENT, S.SCHEDULED]


def test_eight_claimers_share_the_jobs_without_getting_one_twice(store: Store) -> None:
    store.enqueue_all([store.new_job(queue="mail") for _ in range(400)])

    def drain(number: int) -> list[int]:
        mine: list[int] = []
        while claimed := store.claim("mail", limit=7, worker=f"node-{number}"):
            mine += [job.sequence for job in claimed]
        return mine

    shares = at_once(*(partial(drain, number) for number in range(8)))
    numbers = [number for share in shares for number in share]
    assert len(numbers) == len(set(numbers)) == 400


def test_transactions_that_read_first_and_then_write_wait_for_each_other(store: Store) -> None:
    """A transaction that had begun as a reader could not become SQLite's writer by waiting."""

    def read_then_write(connection: Connection) -> None:
        connection.execute(select(schema.jobs.c.id).limit(1)).all()
        insert_jobs(connection, [store.new_job()], now=store.now)

    def often() -> None:
        for _ in range(ROUNDS):
            store.database.write(read_then_write)

    at_once(*[often] * 4)
    assert store.count(S.SCHEDULED) == 4 * ROUNDS
