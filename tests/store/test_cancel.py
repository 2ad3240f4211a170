"""Cancel and requeue as the store carries them out: now, on request, never forgotten."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from latchwork.action_results import CancelOutcome, CancelResult, RequeueOutcome, RequeueResult
from latchwork.decisions.states import JobState
from latchwork.store import operator_actions, previews
from tests.store.builders import (
    ACTOR,
    CANCELLED,
    FAILURE,
    LEASE_SECONDS,
    ON_ANY_TERMINAL,
    SUCCESS,
    Store,
)

S = JobState
REQUESTED = CancelResult(CancelOutcome.REQUESTED, S.LEASED)


def audited(store: Store) -> list[tuple[str, str, str, str]]:
    return [(row.actor, row.action, row.subject_kind, row.subject) for row in store.audit_rows()]


def request_of(store: Store, job_id: UUID) -> tuple[Any, ...]:
    row = store.row(job_id)
    return (row.cancel_pending, row.cancel_requested_at, row.cancel_requested_by)


@pytest.mark.parametrize("state", [S.SCHEDULED, S.AWAITING_PARENT])
def test_a_job_that_has_not_started_is_cancelled_now(store: Store, state: JobState) -> None:
    job_id = store.in_state(state)
    children = [store.enqueue(job_id) for _ in range(3)]
    grandchild = store.enqueue(*children)
    assert store.cancel(job_id) == CancelResult(CancelOutcome.CANCELLED, state)
    assert set(store.states(job_id, *children, grandchild)) == {S.CANCELLED}
    assert audited(store) == [(ACTOR, "cancel", "job", str(job_id))]


def test_a_running_job_is_asked_and_keeps_the_first_asker(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    asked_at = store.now
    log = store.log(job_id)
    assert store.cancel(job_id) == REQUESTED
    store.wait(1)
    before = store.dump()
    assert store.cancel(job_id, actor="ben") == REQUESTED
    assert store.dump() == before
    assert request_of(store, job_id) == (True, asked_at, ACTOR)
    assert store.log(job_id) == log
    assert audited(store) == [(ACTOR, "cancel", "job", str(job_id))]


def test_an_ended_or_unknown_job_refuses_cancel_and_leaves_no_audit_row(store: Store) -> None:
    ended = [store.in_state(state) for state in S if state.terminal]
    before = store.dump()
    for job_id in ended:
        assert store.cancel(job_id) == CancelResult(CancelOutcome.REFUSED, store.state(job_id))
    assert store.cancel(uuid4()) == CancelResult(CancelOutcome.NOT_FOUND, None)
    assert store.dump() == before


def test_the_request_and_delivery_stay_as_history_after_the_end(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    asked_at = store.now
    store.cancel(job_id)
    store.wait(5)
    delivered_at = store.now
    (renewal,) = store.renew(store.hold(job_id))
    assert renewal.cancel_requested
    store.wait(5)
    store.finish(store.hold(job_id), CANCELLED)
    row = store.row(job_id)
    assert request_of(store, job_id) == (False, asked_at, ACTOR)
    assert (row.cancel_delivered_at, row.terminal_at) == (delivered_at, store.now)
    assert (row.state, row.cause_code, row.cause_text) == (S.CANCELLED, "operator_cancel", ACTOR)


def test_returning_normally_after_the_request_is_success(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    child = store.enqueue(job_id)
    store.cancel(job_id)
    store.finish(store.hold(job_id), SUCCESS)
    assert store.states(job_id, child) == [S.SUCCEEDED, S.SCHEDULED]
    assert not store.row(job_id).cancel_pending
    assert store.row(job_id).cause_code is None


@pytest.mark.parametrize("ends_by", ["failure", "expiry"])
def test_a_cancel_is_not_forgotten_when_the_attempt_fails_or_lapses(
    store: Store, ends_by: str
) -> None:
    job_id = store.in_state(S.LEASED)
    child = store.enqueue(job_id)
    cleanup = store.enqueue(job_id, store.enqueue(), mode=ON_ANY_TERMINAL)
    store.cancel(job_id)
    hold = store.hold(job_id)
    if ends_by == "failure":
        due_at = store.now + timedelta(seconds=2)
        store.finish(hold, FAILURE, next_due_at=due_at, failure_detail="boom")
    else:
        store.wait(LEASE_SECONDS)
        assert store.sweep(store.now + timedelta(seconds=2)) == 1
    retried, cancelled = store.log(job_id)[2:]
    assert (retried.state, cancelled.state) == (S.SCHEDULED, S.CANCELLED)
    assert (retried.ordinal, cancelled.ordinal) == (2, 3)
    assert retried.at == cancelled.at == store.now
    assert (cancelled.previous_state, cancelled.attempt) == (S.SCHEDULED, 1)
    row = store.row(job_id)
    assert (row.cause_code, row.cause_text, row.cancel_pending) == ("operator_cancel", ACTOR, False)
    assert len(store.audit_rows()) == 1
    assert store.state(child) is S.CANCELLED
    assert store.row(cleanup).parents_remaining == 1
    before = store.dump()
    for kind in (SUCCESS, CANCELLED, FAILURE):
        assert store.finish(hold, kind).status != "applied"
    assert store.dump() == before


@pytest.mark.parametrize("ends_by", ["failure", "expiry"])
def test_at_the_ceiling_a_cancel_request_ends_dead_lettered_once(
    store: Store, ends_by: str
) -> None:
    job_id = store.in_state(S.LEASED)
    store.cancel(job_id)
    if ends_by == "failure":
        store.finish(store.hold(job_id), FAILURE)
    else:
        store.wait(LEASE_SECONDS)
        store.sweep()
    assert store.path(job_id) == [S.SCHEDULED, S.LEASED, S.DEAD_LETTERED]
    row = store.row(job_id)
    assert (row.cancel_pending, row.cancel_requested_by) == (False, ACTOR)
    assert row.cause_code != "operator_cancel"


@pytest.mark.parametrize("state", [S.DEAD_LETTERED, S.QUARANTINED])
def test_requeue_says_the_state_it_met_and_is_audited(store: Store, state: JobState) -> None:
    job_id = store.in_state(state)
    assert store.requeue(job_id) == RequeueResult(RequeueOutcome.REQUEUED, state)
    assert store.requeue(job_id) == RequeueResult(RequeueOutcome.REFUSED, S.SCHEDULED)
    assert audited(store) == [(ACTOR, "requeue", "job", str(job_id))]


def test_requeue_refuses_every_other_state_and_leaves_no_audit_row(store: Store) -> None:
    refused = [store.in_state(s) for s in S if s not in (S.DEAD_LETTERED, S.QUARANTINED)]
    audit = store.audit_rows()
    before = store.dump()
    for job_id in refused:
        assert store.requeue(job_id) == RequeueResult(RequeueOutcome.REFUSED, store.state(job_id))
    assert store.requeue(uuid4()) == RequeueResult(RequeueOutcome.NOT_FOUND, None)
    assert store.dump() == before
    assert store.audit_rows() == audit


@pytest.mark.parametrize("action", [Store.cancel, Store.requeue])
def test_of_two_operators_at_once_one_wins_and_the_other_is_told_what_it_met(
    store: Store, action: Any
) -> None:
    start = S.SCHEDULED if action is Store.cancel else S.DEAD_LETTERED
    met = S.CANCELLED if action is Store.cancel else S.SCHEDULED
    for _ in range(5):
        job_id = store.in_state(start)
        with ThreadPoolExecutor(2) as threads:
            results = [
                future.result()
                for future in [threads.submit(action, store, job_id, actor=a) for a in "ab"]
            ]
        outcomes = sorted((str(result.outcome), result.state) for result in results)
        won = "cancelled" if action is Store.cancel else "requeued"
        assert outcomes == sorted([("refused", met), (won, start)])
    assert len(store.audit_rows()) == 5


@pytest.mark.parametrize("state", [S.SCHEDULED, S.LEASED, S.DEAD_LETTERED])
def test_a_repeat_under_the_same_request_id_is_answered_as_the_first_was(
    store: Store, state: JobState
) -> None:
    job_id = store.in_state(state)
    action: Any = operator_actions.cancel
    if state is S.DEAD_LETTERED:
        action = operator_actions.requeue
    asked = {"actor": ACTOR, "now": store.now, "request_id": uuid4()}
    first = store.database.write(action, job_id, **asked)
    before = store.dump()
    assert store.database.write(action, job_id, **asked) == first
    assert store.dump() == before
    assert len(store.audit_rows()) == 1


def test_previews_say_what_the_actions_then_do(store: Store) -> None:
    root = store.enqueue()
    child = store.enqueue(root)
    store.enqueue(child)
    store.enqueue(child, mode=ON_ANY_TERMINAL)
    store.enqueue(child, store.enqueue(), mode=ON_ANY_TERMINAL)
    before = store.dump()
    preview = store.database.read(previews.preview_cancel, root)
    assert store.dump() == before
    assert preview is not None
    assert (preview.allowed, preview.state) == (True, S.SCHEDULED)
    assert (preview.cascade.value, preview.released.value) == (2, 1)
    scheduled = store.count(S.SCHEDULED)
    store.cancel(root)
    assert (store.count(S.CANCELLED), store.count(S.SCHEDULED)) == (3, scheduled)
    refused = store.database.read(previews.preview_cancel, root)
    assert refused is not None
    assert not refused.allowed
    assert store.database.read(previews.preview_cancel, uuid4()) is None


def test_the_requeue_preview_counts_what_stays_cancelled(store: Store) -> None:
    dead = store.enqueue()
    child = store.enqueue(dead)
    store.enqueue(child)
    store.end(dead, S.DEAD_LETTERED)
    preview = store.database.read(previews.preview_requeue, dead)
    assert preview is not None
    assert (preview.allowed, preview.stays_cancelled.value) == (True, 2)
    store.requeue(dead)
    assert store.count(S.CANCELLED) == 2
    refused = store.database.read(previews.preview_requeue, dead)
    assert refused is not None
    assert not refused.allowed
    assert store.database.read(previews.preview_requeue, uuid4()) is None
