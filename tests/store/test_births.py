"""Births B1 to B3: how a job enters, decided by its parents at that moment."""

from uuid import uuid4

import pytest

from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import JobState
from latchwork.errors import UnknownParent
from tests.store.builders import ACTOR, ON_ANY_TERMINAL, ON_SUCCESS, START, Store

S = JobState
LIVE = (S.SCHEDULED, S.AWAITING_PARENT, S.LEASED)
FAILED = (S.CANCELLED, S.DEAD_LETTERED, S.QUARANTINED)


def test_b1_a_job_without_parents_is_scheduled_and_due_as_given(store: Store) -> None:
    due_at = START.replace(year=2027)
    policy = RetryPolicy(max_attempts=3, base_seconds=0.5, factor=1.5, cap_seconds=9, jitter=0.25)
    job_id = store.enqueue(
        wire_name="charge", queue="payments", payload='{"order": "42"}', due_at=due_at,
        retry=policy, tags=("vip", ("order", "42")),
    )  # fmt: skip
    row = store.row(job_id)
    assert (row.state, row.attempt, row.claim_number, row.parents_remaining) == (
        S.SCHEDULED,
        0,
        0,
        0,
    )
    assert (row.due_at, row.enqueued_at, row.state_since) == (due_at, START, START)
    assert (row.payload, row.wire_name, row.queue) == ('{"order": "42"}', "charge", "payments")
    assert store.tags(job_id) == ("vip", ("order", "42"))
    (born,) = store.log(job_id)
    assert (born.ordinal, born.at, born.state, born.previous_state) == (0, START, S.SCHEDULED, None)
    assert (born.attempt, born.queue, born.wire_name) == (0, "payments", "charge")
    assert (born.due_at, born.worker, born.failure_detail) == (due_at, None, None)
    store.now = due_at
    (claimed,) = store.claim("payments")
    assert (claimed.retry, claimed.tags) == (policy, ("vip", ("order", "42")))


@pytest.mark.parametrize("mode", [ON_SUCCESS, ON_ANY_TERMINAL])
def test_b1_a_job_whose_parents_all_succeeded_is_scheduled(store: Store, mode: str) -> None:
    parents = [store.in_state(S.SUCCEEDED) for _ in range(3)]
    job_id = store.enqueue(*parents, mode=mode)
    assert store.row(job_id).parents_remaining == 0
    assert store.path(job_id) == [S.SCHEDULED]
    assert store.edges(job_id) == dict.fromkeys(parents, False)


@pytest.mark.parametrize("end", FAILED)
def test_b1_an_any_terminal_job_whose_parents_all_ended_is_scheduled(
    store: Store, end: JobState
) -> None:
    parents = [store.in_state(end), store.in_state(S.SUCCEEDED)]
    job_id = store.enqueue(*parents, mode=ON_ANY_TERMINAL)
    assert store.path(job_id) == [S.SCHEDULED]
    assert store.edges(job_id) == dict.fromkeys(parents, False)


@pytest.mark.parametrize("mode", [ON_SUCCESS, ON_ANY_TERMINAL])
def test_b2_a_job_with_live_parents_waits_for_each_of_them(store: Store, mode: str) -> None:
    live = [store.in_state(state) for state in LIVE]
    done = store.in_state(S.SUCCEEDED)
    job_id = store.enqueue(*live, done, mode=mode)
    row = store.row(job_id)
    assert (row.state, row.parents_remaining, row.mode) == (S.AWAITING_PARENT, 3, mode)
    assert store.edges(job_id) == dict.fromkeys(live, True) | {done: False}
    (born,) = store.log(job_id)
    assert (born.ordinal, born.state, born.previous_state) == (0, S.AWAITING_PARENT, None)
    assert (born.attempt, born.due_at) == (0, None)


@pytest.mark.parametrize("end", FAILED)
def test_b2_an_any_terminal_job_waits_for_the_live_parents_only(
    store: Store, end: JobState
) -> None:
    failed, live = store.in_state(end), store.in_state(S.LEASED)
    job_id = store.enqueue(failed, live, mode=ON_ANY_TERMINAL)
    assert store.row(job_id).parents_remaining == 1
    assert store.edges(job_id) == {failed: False, live: True}


@pytest.mark.parametrize("end", FAILED)
def test_b3_one_failed_parent_cancels_an_on_success_job_at_once(
    store: Store, end: JobState
) -> None:
    live, failed = store.in_state(S.LEASED), store.in_state(end)
    job_id = store.enqueue(live, failed, store.in_state(S.SUCCEEDED))
    row = store.row(job_id)
    assert (row.state, row.parents_remaining, row.terminal_at) == (S.CANCELLED, 0, store.now)
    assert (row.cause_code, row.cause_parent_id, row.cause_parent_state, row.cause_root_id) == (
        "parent_failed", failed, end, failed,
    )  # fmt: skip
    assert not any(store.edges(job_id).values())
    (born,) = store.log(job_id)
    assert (born.ordinal, born.state, born.previous_state) == (0, S.CANCELLED, None)
    store.end(live)
    assert store.path(job_id) == [S.CANCELLED]


def test_b3_names_the_failed_parent_with_the_lowest_enqueue_number(store: Store) -> None:
    first, second = store.enqueue(), store.enqueue()
    store.end(second, S.DEAD_LETTERED)
    store.end(first, S.QUARANTINED)
    row = store.row(store.enqueue(second, first))
    assert (row.cause_parent_id, row.cause_parent_state) == (first, S.QUARANTINED)


def test_b3_below_a_cascade_names_the_cascades_root(store: Store) -> None:
    root = store.enqueue()
    child = store.enqueue(root)
    store.cancel(root, actor=ACTOR)
    grandchild = store.row(store.enqueue(child))
    assert (grandchild.cause_parent_id, grandchild.cause_root_id) == (child, root)


def test_a_graph_enqueued_at_once_is_born_as_if_one_by_one(store: Store) -> None:
    dead, live = store.in_state(S.DEAD_LETTERED), store.in_state(S.LEASED)
    top = store.new_job()
    waits = store.new_job(top.id, live)
    doomed = store.new_job(dead)
    below_doomed = store.new_job(doomed.id, top.id)
    cleanup = store.new_job(doomed.id, mode=ON_ANY_TERMINAL)
    ids = store.enqueue_all([top, waits, doomed, below_doomed, cleanup])
    assert store.states(*ids) == [
        S.SCHEDULED, S.AWAITING_PARENT, S.CANCELLED, S.CANCELLED, S.SCHEDULED,
    ]  # fmt: skip
    rows = [store.row(job_id) for job_id in ids]
    assert [row.sequence for row in rows] == sorted(row.sequence for row in rows)
    assert (rows[3].cause_parent_id, rows[3].cause_root_id) == (doomed.id, dead)
    assert store.edges(waits.id) == {top.id: True, live: True}


def test_a_graph_with_one_bad_job_stores_nothing(store: Store) -> None:
    before = store.dump()
    good, bad = store.new_job(), store.new_job(uuid4())
    with pytest.raises(UnknownParent):
        store.enqueue_all([good, bad])
    assert store.dump() == before


def test_a_parent_that_stands_later_in_the_graph_is_unknown(store: Store) -> None:
    parent = store.new_job()
    child = store.new_job(parent.id)
    with pytest.raises(UnknownParent) as refused:
        store.enqueue_all([child, parent])
    assert refused.value.parent_id == parent.id


def test_enqueue_numbers_rise_in_the_order_given(store: Store) -> None:
    ids = store.enqueue_all([store.new_job() for _ in range(200)])
    numbers = [store.row(job_id).sequence for job_id in ids[::20]]
    assert numbers == sorted(numbers)
