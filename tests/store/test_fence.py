"""The fence: an outcome applies to exactly the lease it was made under, or nothing changes."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from latchwork.decisions.leases import Hold
from latchwork.decisions.states import JobState
from latchwork.store.outcomes import Answer, AnswerStatus, OutcomeKind, Report
from tests.store.builders import (
    CANCELLED,
    FAILURE,
    LEASE_SECONDS,
    ON_ANY_TERMINAL,
    SUCCESS,
    UNROUTABLE,
    Store,
)

S = JobState
STALE = Answer(AnswerStatus.STALE)
KINDS = (SUCCESS, FAILURE, CANCELLED, UNROUTABLE)


def already(state: JobState) -> Answer:
    return Answer(AnswerStatus.ALREADY_APPLIED, state)


MISMATCHES: dict[str, Callable[[Hold], Hold]] = {
    "attempt": lambda hold: hold._replace(attempt=hold.attempt + 1),
    "claim number": lambda hold: hold._replace(claim_number=hold.claim_number + 1),
    "an earlier claim": lambda hold: hold._replace(claim_number=hold.claim_number - 1),
    "a job that is not stored": lambda hold: hold._replace(sequence=10**9),
}


@pytest.mark.parametrize("wait", [False, True])
def test_a_single_mismatch_changes_nothing_at_all(store: Store, wait: bool) -> None:
    job_id = store.in_state(S.LEASED)
    store.enqueue(job_id)
    store.enqueue(job_id, mode=ON_ANY_TERMINAL)
    hold = store.hold(job_id)
    before = store.dump()
    due = store.now + timedelta(seconds=1)
    for mismatch in MISMATCHES.values():
        for kind in KINDS:
            report = Report(mismatch(hold), kind, output="1", tags=("x",), failure_detail="boom")
            assert store.report(report, wait=wait) == [STALE]
        assert store.report(Report(mismatch(hold), FAILURE, next_due_at=due)) == [STALE]
    assert store.report(Report(hold, SUCCESS, output="1"), worker="node-2") == [STALE]
    assert store.dump() == before
    store.wait(LEASE_SECONDS)  # the instant of expiry: not swept, but lapsed
    for kind in KINDS:
        assert store.report(Report(hold, kind, output="1"), wait=wait) == [STALE]
    assert store.dump() == before


def test_a_microsecond_before_expiry_the_lease_still_holds(store: Store) -> None:
    hold = store.lease(store.enqueue())
    store.now += timedelta(seconds=LEASE_SECONDS, microseconds=-1)
    assert store.finish(hold) == Answer(AnswerStatus.APPLIED, S.SUCCEEDED)


def test_only_a_leased_job_takes_an_outcome(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    hold = store.hold(job_id)
    store.wait(LEASE_SECONDS)
    store.sweep(store.now)
    before = store.dump()
    assert [store.finish(hold, kind) for kind in KINDS] == [STALE] * 4
    assert store.dump() == before


def test_a_frozen_first_attempt_of_an_earlier_life_is_refused(store: Store) -> None:
    """The same worker, attempt 1 again after a requeue: only the claim number tells."""
    job_id = store.enqueue()
    frozen = store.lease(job_id)
    store.wait(LEASE_SECONDS)
    store.sweep()
    store.requeue(job_id)
    current = store.lease(job_id)
    assert (frozen.attempt, current.attempt) == (1, 1)
    before = store.dump()
    assert store.finish(frozen, SUCCESS) == STALE
    assert store.dump() == before
    assert store.finish(current, SUCCESS).status is AnswerStatus.APPLIED


@pytest.mark.parametrize("kind", KINDS)
def test_a_repeated_report_is_answered_with_the_outcome_that_stood(
    store: Store, kind: OutcomeKind
) -> None:
    job_id = store.enqueue()
    hold = store.lease(job_id)
    store.cancel(job_id)
    first = store.finish(hold, kind)
    before = store.dump()
    for repeated in KINDS:
        assert store.finish(hold, repeated, output="2") == already(store.state(job_id))
    assert store.finish(hold, kind, worker="node-2") == STALE
    assert first.state is store.state(job_id)
    assert store.dump() == before


def test_a_retry_that_was_applied_is_recognised_until_another_outcome_stands(store: Store) -> None:
    job_id = store.enqueue()
    first = store.lease(job_id)
    store.finish(first, FAILURE, next_due_at=store.now)
    assert store.finish(first, FAILURE, next_due_at=store.now) == already(S.SCHEDULED)
    second = store.lease(job_id)
    assert store.finish(first, FAILURE) == already(S.SCHEDULED)
    store.finish(second, SUCCESS)
    assert store.finish(first, FAILURE) == STALE
    assert store.finish(second, SUCCESS) == already(S.SUCCEEDED)


def test_what_was_applied_is_recognised_after_a_requeue_and_not_after_an_expiry(
    store: Store,
) -> None:
    job_id = store.enqueue()
    failed = store.lease(job_id)
    store.finish(failed, FAILURE)
    store.requeue(job_id)
    assert store.finish(failed, FAILURE) == already(S.DEAD_LETTERED)
    lapsed = store.lease(job_id)
    store.wait(LEASE_SECONDS)
    store.sweep()
    assert store.finish(lapsed, SUCCESS) == STALE


def test_a_retry_that_a_cancel_followed_is_answered_with_the_end_that_stood(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    hold = store.hold(job_id)
    store.cancel(job_id)
    first = store.finish(hold, FAILURE, next_due_at=store.now + timedelta(seconds=5))
    assert first == Answer(AnswerStatus.APPLIED, S.CANCELLED)
    repeated = store.finish(hold, FAILURE, next_due_at=store.now)
    assert repeated.status is AnswerStatus.ALREADY_APPLIED


def test_each_report_of_a_batch_is_fenced_on_its_own_and_answered_in_order(store: Store) -> None:
    jobs = store.enqueue_all([store.new_job(queue="batch") for _ in range(6)])
    holds = [job.hold for job in store.claim("batch", limit=6)]
    store.finish(holds[1])
    store.cancel(jobs[3])
    reports = [
        Report(holds[5], SUCCESS),
        Report(holds[1], FAILURE),
        Report(holds[0]._replace(attempt=9), SUCCESS),
        Report(holds[4], UNROUTABLE),
        Report(holds[2], FAILURE, next_due_at=store.now),
        Report(holds[3], CANCELLED),
    ]
    answers = store.report(*reports)
    assert answers == [
        Answer(AnswerStatus.APPLIED, S.SUCCEEDED),
        already(S.SUCCEEDED),
        STALE,
        Answer(AnswerStatus.APPLIED, S.QUARANTINED),
        Answer(AnswerStatus.APPLIED, S.SCHEDULED),
        Answer(AnswerStatus.APPLIED, S.CANCELLED),
    ]
    assert store.states(*jobs) == [
        S.LEASED, S.SUCCEEDED, S.SCHEDULED, S.CANCELLED, S.QUARANTINED, S.SUCCEEDED,
    ]  # fmt: skip


def test_a_claim_reported_twice_in_one_batch_counts_once(store: Store) -> None:
    job_id = store.enqueue()
    child = store.enqueue(job_id, store.enqueue())
    hold = store.lease(job_id)
    answers = store.report(Report(hold, SUCCESS, output="1"), Report(hold, FAILURE))
    assert answers == [Answer(AnswerStatus.APPLIED, S.SUCCEEDED)] * 2
    assert store.path(job_id) == [S.SCHEDULED, S.LEASED, S.SUCCEEDED]
    assert store.row(child).parents_remaining == 1


def test_one_job_under_two_claims_in_one_batch_takes_the_current_one(store: Store) -> None:
    job_id = store.enqueue()
    old = store.lease(job_id)
    store.wait(LEASE_SECONDS)
    store.sweep(store.now)
    current = store.lease(job_id)
    answers = store.report(Report(old, FAILURE), Report(current, SUCCESS))
    assert answers == [STALE, Answer(AnswerStatus.APPLIED, S.SUCCEEDED)]
