"""Edges 1 to 11 of the table: what each writes into the row and into the log."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from latchwork.decisions.states import TERMINAL_STATES, JobState
from latchwork.decisions.transitions import Event
from latchwork.store.moves import Cause
from tests.store.builders import (
    ACTOR,
    CANCELLED,
    FAILURE,
    LEASE_SECONDS,
    ON_ANY_TERMINAL,
    START,
    SUCCESS,
    UNROUTABLE,
    WORKER,
    Store,
)

S = JobState
CAUSE = Cause("attempts_exhausted", "ValueError", "no such order")


def last_row(store: Store, job_id: UUID) -> dict[str, Any]:
    """The last log row, without what never changes."""
    row = store.log(job_id)[-1]._asdict()
    names = ("ordinal", "at", "previous_state", "state", "attempt", "worker", "due_at")
    return {name: row[name] for name in names} | {"detail": row["failure_detail"]}


def logged(
    ordinal: int, at: Any, source: JobState, target: JobState, attempt: int, **given: Any
) -> dict[str, Any]:
    return {
        "ordinal": ordinal, "at": at, "previous_state": source, "state": target,
        "attempt": attempt, "worker": None, "due_at": None, "detail": None,
    } | given  # fmt: skip


def cause_of(store: Store, job_id: UUID) -> tuple[Any, ...]:
    row = store.row(job_id)
    return (row.cause_code, row.cause_type, row.cause_text, row.cause_parent_id)


def applied_of(store: Store, job_id: UUID) -> tuple[Any, ...]:
    row = store.row(job_id)
    return (row.applied_claim, row.applied_worker, row.applied_outcome)


@pytest.mark.parametrize("due_in_seconds", [-5, 5, 3600])
def test_edge_1_a_released_job_is_due_at_the_later_of_its_own_time_and_now(
    store: Store, due_in_seconds: float
) -> None:
    parent = store.in_state(S.LEASED)
    own_due = START + timedelta(seconds=due_in_seconds)
    child = store.enqueue(parent, due_at=own_due)
    store.wait(10)
    store.end(parent)
    row = store.row(child)
    due_at = max(own_due, store.now)
    assert (row.state, row.parents_remaining, row.due_at) == (S.SCHEDULED, 0, due_at)
    assert (row.state_since, row.terminal_at, row.attempt) == (store.now, None, 0)
    assert last_row(store, child) == logged(
        1, store.now, S.AWAITING_PARENT, S.SCHEDULED, 0, due_at=due_at
    )


def test_the_log_says_which_event_moved_a_job_between_the_same_states(store: Store) -> None:
    parents = [store.in_state(S.LEASED), store.in_state(S.LEASED)]
    children = [store.enqueue(parent) for parent in parents]
    store.end(parents[0], S.DEAD_LETTERED)
    store.cancel(children[1])
    events = [store.log(child)[-1].event for child in children]
    assert events == [Event.PARENT_FAILED, Event.OPERATOR_CANCEL]


def test_edge_2_a_waiting_job_is_cancelled_by_its_parents_failure(store: Store) -> None:
    parent = store.in_state(S.LEASED)
    child = store.enqueue(parent)
    store.wait(1)
    store.end(parent, S.DEAD_LETTERED, cause=CAUSE)
    row = store.row(child)
    assert (row.state, row.parents_remaining, row.terminal_at) == (S.CANCELLED, 0, store.now)
    assert cause_of(store, child) == ("parent_failed", None, None, parent)
    assert (row.cause_parent_state, row.cause_root_id) == (S.DEAD_LETTERED, parent)
    assert store.edges(child) == {parent: False}
    assert last_row(store, child) == logged(1, store.now, S.AWAITING_PARENT, S.CANCELLED, 0)


def test_edge_2_a_waiting_job_is_cancelled_by_an_operator_and_its_edges_close(
    store: Store,
) -> None:
    parents = [store.in_state(S.LEASED), store.enqueue()]
    child = store.enqueue(*parents)
    below, cleanup = store.enqueue(child), store.enqueue(child, mode=ON_ANY_TERMINAL)
    store.wait(1)
    store.cancel(child)
    assert store.row(child).parents_remaining == 0
    assert store.edges(child) == dict.fromkeys(parents, False)
    assert cause_of(store, child) == ("operator_cancel", None, ACTOR, None)
    assert last_row(store, child) == logged(1, store.now, S.AWAITING_PARENT, S.CANCELLED, 0)
    assert store.states(below, cleanup) == [S.CANCELLED, S.SCHEDULED]
    assert store.row(below).cause_root_id == child
    store.end(parents[0])
    store.end(parents[1], S.DEAD_LETTERED)
    assert store.path(child) == [S.AWAITING_PARENT, S.CANCELLED]


def test_edge_3_a_claim_raises_attempt_and_claim_number_and_sets_the_lease(store: Store) -> None:
    job_id = store.enqueue()
    store.wait(2)
    store.lease(job_id)
    row = store.row(job_id)
    expires_at = store.now + timedelta(seconds=LEASE_SECONDS)
    assert (row.state, row.attempt, row.claim_number) == (S.LEASED, 1, 1)
    assert (row.owner, row.lease_expires_at) == (WORKER, expires_at)
    assert last_row(store, job_id) == logged(1, store.now, S.SCHEDULED, S.LEASED, 1, worker=WORKER)


def test_edge_3_a_claim_forgets_an_earlier_cancel_request(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    store.cancel(job_id)
    store.end(job_id, S.DEAD_LETTERED)
    store.requeue(job_id)
    store.lease(job_id)
    row = store.row(job_id)
    assert not row.cancel_pending
    assert row.cancel_requested_at is row.cancel_requested_by is row.cancel_delivered_at is None


@pytest.mark.parametrize("retried_before", [False, True])
def test_edge_4_a_scheduled_job_is_cancelled_also_while_it_waits_for_a_retry(
    store: Store, retried_before: bool
) -> None:
    job_id = store.enqueue()
    if retried_before:
        store.finish(store.lease(job_id), FAILURE, next_due_at=START + timedelta(hours=1))
    child = store.enqueue(job_id)
    store.wait(1)
    store.cancel(job_id)
    row = store.row(job_id)
    assert (row.state, row.attempt, row.terminal_at) == (S.CANCELLED, retried_before, store.now)
    assert cause_of(store, job_id) == ("operator_cancel", None, ACTOR, None)
    assert last_row(store, job_id) == logged(
        3 if retried_before else 1, store.now, S.SCHEDULED, S.CANCELLED, retried_before
    )
    assert store.state(child) is S.CANCELLED


def test_edge_5_success_stores_the_output_and_releases_the_children(store: Store) -> None:
    job_id = store.enqueue()
    child, cleanup = store.enqueue(job_id), store.enqueue(job_id, mode=ON_ANY_TERMINAL)
    hold = store.lease(job_id)
    store.wait(3)
    answer = store.finish(hold, SUCCESS, output='{"a":1}')
    assert (answer.status, answer.state) == ("applied", S.SUCCEEDED)
    row = store.row(job_id)
    assert (row.state, row.attempt, row.claim_number) == (S.SUCCEEDED, 1, 1)
    assert (row.owner, row.lease_expires_at, row.terminal_at) == (None, None, store.now)
    assert (row.applied_claim, row.applied_worker, row.applied_outcome) == (1, WORKER, S.SUCCEEDED)
    assert cause_of(store, job_id) == (None, None, None, None)
    assert last_row(store, job_id) == logged(2, store.now, S.LEASED, S.SUCCEEDED, 1, worker=WORKER)
    assert store.outputs() == {job_id: '{"a":1}'}
    assert store.states(child, cleanup) == [S.SCHEDULED, S.SCHEDULED]


def test_edge_6_a_failure_with_a_due_time_is_scheduled_again(store: Store) -> None:
    job_id = store.enqueue()
    child = store.enqueue(job_id)
    hold = store.lease(job_id)
    store.wait(3)
    due_at = store.now + timedelta(seconds=2)
    answer = store.finish(hold, FAILURE, next_due_at=due_at, cause=CAUSE, failure_detail="boom")
    assert (answer.status, answer.state) == ("applied", S.SCHEDULED)
    row = store.row(job_id)
    assert (row.state, row.attempt, row.claim_number, row.due_at) == (S.SCHEDULED, 1, 1, due_at)
    assert (row.owner, row.lease_expires_at, row.terminal_at) == (None, None, None)
    assert row.applied_outcome is S.SCHEDULED
    assert cause_of(store, job_id) == (None, None, None, None)
    assert last_row(store, job_id) == logged(
        2, store.now, S.LEASED, S.SCHEDULED, 1, worker=WORKER, due_at=due_at, detail="boom"
    )
    assert store.state(child) is S.AWAITING_PARENT
    store.wait(2)
    assert store.lease(job_id)[1:] == (2, 2)


@pytest.mark.parametrize(
    ("kind", "state", "detail"),
    [
        (FAILURE, S.DEAD_LETTERED, "boom"),
        (CANCELLED, S.CANCELLED, None),
        (UNROUTABLE, S.QUARANTINED, None),
    ],
)
def test_edges_7_8_9_end_the_job_with_its_cause_and_settle_the_children(
    store: Store, kind: Any, state: JobState, detail: str | None
) -> None:
    job_id = store.enqueue()
    child, cleanup = store.enqueue(job_id), store.enqueue(job_id, mode=ON_ANY_TERMINAL)
    hold = store.lease(job_id)
    if kind is CANCELLED:
        store.cancel(job_id)
    store.wait(3)
    # A detail is kept on edges 6 and 7 only, an output with Succeeded only.
    store.finish(hold, kind, cause=CAUSE, failure_detail="boom", output="1")
    row = store.row(job_id)
    assert (row.state, row.attempt, row.terminal_at) == (state, 1, store.now)
    assert (row.owner, row.lease_expires_at, row.cancel_pending) == (None, None, False)
    assert row.applied_outcome is state
    assert cause_of(store, job_id) == (
        ("operator_cancel", None, ACTOR, None)
        if kind is CANCELLED
        else (CAUSE.code, CAUSE.type, CAUSE.text, None)
    )
    assert last_row(store, job_id) == logged(
        2, store.now, S.LEASED, state, 1, worker=WORKER, detail=detail
    )
    assert store.states(child, cleanup) == [S.CANCELLED, S.SCHEDULED]
    assert store.outputs() == {}


@pytest.mark.parametrize("state", [S.DEAD_LETTERED, S.QUARANTINED])
def test_edges_10_and_11_requeue_gives_a_new_life(store: Store, state: JobState) -> None:
    job_id = store.enqueue()
    child = store.enqueue(job_id)
    cleanup = store.enqueue(job_id, store.enqueue(), mode=ON_ANY_TERMINAL)
    store.lease(job_id)
    store.cancel(job_id)
    store.end(job_id, state, cause=CAUSE)
    applied = applied_of(store, job_id)
    store.wait(5)
    store.requeue(job_id)
    row = store.row(job_id)
    assert (row.state, row.attempt, row.claim_number, row.due_at) == (S.SCHEDULED, 0, 1, store.now)
    assert row.terminal_at is None
    assert cause_of(store, job_id) == (None, None, None, None)
    assert row.cancel_requested_at is row.cancel_requested_by is row.cancel_delivered_at is None
    assert applied_of(store, job_id) == applied == (1, WORKER, state)
    assert last_row(store, job_id) == logged(3, store.now, state, S.SCHEDULED, 0, due_at=store.now)
    assert store.lease(job_id)[1:] == (1, 2)
    # A requeue reopens no edge: the children keep what the earlier end did.
    assert store.edges(child) == {job_id: False}
    assert store.row(cleanup).parents_remaining == 1
    store.end(job_id)
    assert store.states(child, cleanup) == [S.CANCELLED, S.AWAITING_PARENT]
    assert store.row(cleanup).parents_remaining == 1


def test_no_other_call_moves_a_job_and_a_refused_one_writes_nothing(store: Store) -> None:
    ids = {state: store.in_state(state) for state in S}
    store.wait(LEASE_SECONDS + 1)
    before = store.dump()
    for state, job_id in ids.items():
        if state is not S.SCHEDULED:
            assert store.claim(store.row(job_id).queue) == []
        if state.terminal:
            store.cancel(job_id)
        if state not in (S.DEAD_LETTERED, S.QUARANTINED):
            store.requeue(job_id)
        hold = store.hold(job_id)
        for kind in (SUCCESS, FAILURE, CANCELLED, UNROUTABLE):
            store.finish(hold, kind)
            store.finish(hold, kind, worker="node-2")
        store.renew(hold)
    assert [job.sequence for job in store.lapsed()] == [store.row(ids[S.LEASED]).sequence]
    assert store.dump() == before


def test_a_terminal_job_is_not_swept_renewed_or_settled_again(store: Store) -> None:
    for state in TERMINAL_STATES:
        parents = [store.enqueue(), store.enqueue()]
        child = store.enqueue(*parents)
        store.cancel(child)
        before = store.log(child)
        store.end(parents[0], state)
        store.end(parents[1], state)
        assert store.log(child) == before


def test_times_in_the_log_never_go_back_when_the_clock_does(store: Store) -> None:
    parent = store.enqueue(due_at=START - timedelta(days=1))
    child = store.enqueue(parent, due_at=START - timedelta(days=1))
    store.wait(-60)
    hold = store.lease(parent)
    store.wait(-60)
    store.finish(hold, FAILURE, next_due_at=store.now)
    store.cancel(parent)
    for job_id in (parent, child):
        assert {row.at for row in store.log(job_id)} == {START}
    assert store.row(child).terminal_at == START
    dead = store.in_state(S.DEAD_LETTERED)
    store.wait(-60)
    store.requeue(dead)
    times = [row.at for row in store.log(dead)]
    assert times == sorted(times)
