"""Latches: what each parent's end does to the children that wait for it."""

from itertools import pairwise

import pytest

from latchwork.decisions.states import JobState
from latchwork.store.outcomes import Report
from tests.store.builders import (
    FAILURE,
    LEASE_SECONDS,
    ON_ANY_TERMINAL,
    START,
    SUCCESS,
    Store,
)

S = JobState
FAILED = (S.CANCELLED, S.DEAD_LETTERED, S.QUARANTINED)


def test_a_child_waits_for_the_last_of_its_sixteen_parents(store: Store) -> None:
    parents = store.enqueue_all([store.new_job() for _ in range(16)])
    child = store.enqueue(*parents)
    for left, parent in zip(range(15, -1, -1), parents, strict=True):
        assert store.state(child) is S.AWAITING_PARENT
        store.end(parent)
        assert store.row(child).parents_remaining == left
        assert store.edges(child)[parent] is False
    # Counting down writes no row: only the release does.
    assert store.path(child) == [S.AWAITING_PARENT, S.SCHEDULED]


def test_an_any_terminal_child_is_released_by_ends_of_every_kind(store: Store) -> None:
    ends = [S.DEAD_LETTERED, S.QUARANTINED, S.CANCELLED, S.SUCCEEDED]
    parents = store.enqueue_all([store.new_job() for _ in ends])
    child = store.enqueue(*parents, mode=ON_ANY_TERMINAL)
    for parent, end in zip(parents, ends, strict=True):
        assert store.state(child) is S.AWAITING_PARENT
        store.end(parent, end)
    assert store.path(child) == [S.AWAITING_PARENT, S.SCHEDULED]


@pytest.mark.parametrize("end", FAILED)
def test_the_first_failed_parent_cancels_and_the_other_edges_close(
    store: Store, end: JobState
) -> None:
    parents = store.enqueue_all([store.new_job() for _ in range(4)])
    child = store.enqueue(*parents)
    store.end(parents[0])
    store.lease(parents[3])
    store.end(parents[2], end)
    assert store.edges(child) == dict.fromkeys(parents, False)
    row = store.row(child)
    assert (row.state, row.parents_remaining) == (S.CANCELLED, 0)
    assert (row.cause_parent_id, row.cause_parent_state) == (parents[2], end)
    store.end(parents[1], S.QUARANTINED)
    store.end(parents[3])
    assert store.row(child) == row


def test_two_parents_that_end_in_one_batch_are_both_counted(store: Store) -> None:
    parents = store.enqueue_all([store.new_job(queue="batch") for _ in range(3)])
    both, waits = store.enqueue(*parents[:2]), store.enqueue(*parents)
    holds = [job.hold for job in store.claim("batch", limit=2)]
    store.report(*(Report(hold, SUCCESS) for hold in holds))
    assert store.state(both) is S.SCHEDULED
    assert store.row(waits).parents_remaining == 1


def test_a_parent_that_succeeds_and_one_that_fails_in_one_batch_cancel_the_child(
    store: Store,
) -> None:
    parents = store.enqueue_all([store.new_job(queue="batch") for _ in range(2)])
    child, cleanup = store.enqueue(*parents), store.enqueue(*parents, mode=ON_ANY_TERMINAL)
    first, second = [job.hold for job in store.claim("batch", limit=2)]
    store.report(Report(first, SUCCESS), Report(second, FAILURE))
    assert store.states(child, cleanup) == [S.CANCELLED, S.SCHEDULED]
    assert store.row(child).cause_parent_id == parents[1]


def test_the_cause_names_the_failed_parent_with_the_lowest_number(store: Store) -> None:
    parents = store.enqueue_all([store.new_job(queue="batch") for _ in range(3)])
    child = store.enqueue(*reversed(parents))
    holds = [job.hold for job in store.claim("batch", limit=3)]
    store.report(*(Report(hold, FAILURE) for hold in (holds[2], holds[1])))
    row = store.row(child)
    assert (row.cause_parent_id, row.cause_parent_state, row.cause_root_id) == (
        parents[1], S.DEAD_LETTERED, parents[1],
    )  # fmt: skip


def test_a_cascade_names_each_childs_own_parent_and_the_one_root(store: Store) -> None:
    root = store.enqueue()
    chain = [root]
    for _ in range(4):
        chain.append(store.enqueue(chain[-1]))
    store.end(root, S.QUARANTINED)
    for parent, child in pairwise(chain):
        row = store.row(child)
        assert (row.cause_parent_id, row.cause_root_id) == (parent, root)
        assert row.cause_parent_state is (S.QUARANTINED if parent == root else S.CANCELLED)
        assert row.cause_code == "parent_failed"


def test_a_diamond_is_cancelled_once_each(store: Store) -> None:
    root = store.enqueue()
    middle = [store.enqueue(root) for _ in range(5)]
    bottom = store.enqueue(*middle)
    below = store.enqueue(bottom, *middle)
    store.cancel(root)
    for job_id in (*middle, bottom, below):
        assert store.path(job_id) == [S.AWAITING_PARENT, S.CANCELLED]
    assert store.row(bottom).cause_parent_id == middle[0]


def test_the_cascade_stops_at_an_any_terminal_child_which_is_released(store: Store) -> None:
    root = store.enqueue()
    cancelled = store.enqueue(root)
    cleanup = store.enqueue(cancelled, root, mode=ON_ANY_TERMINAL)
    after_cleanup = store.enqueue(cleanup)
    waits = store.enqueue(cancelled, store.enqueue(), mode=ON_ANY_TERMINAL)
    store.end(root, S.DEAD_LETTERED)
    assert store.states(cancelled, cleanup, after_cleanup, waits) == [
        S.CANCELLED, S.SCHEDULED, S.AWAITING_PARENT, S.AWAITING_PARENT,
    ]  # fmt: skip
    assert store.row(waits).parents_remaining == 1
    store.end(cleanup)
    assert store.state(after_cleanup) is S.SCHEDULED


def test_a_cascades_log_rows_come_in_enqueue_order(store: Store) -> None:
    root = store.enqueue()
    left, right = store.enqueue(root), store.enqueue(root)
    bottom = store.enqueue(right, left)
    cleanup = store.enqueue(bottom, mode=ON_ANY_TERMINAL)
    store.end(root, S.DEAD_LETTERED)
    order = (root, left, right, bottom, cleanup)
    positions = [store.log(job_id)[-1].position for job_id in order]
    assert positions == sorted(positions)
    assert positions[-1] - positions[0] == 4


def test_every_way_to_end_settles_the_children(store: Store) -> None:
    """Operator cancel, failure, expiry at the ceiling, a retry with a cancel asked for."""
    for way in ("cancel", "failure", "expiry", "retry and cancel"):
        parent = store.enqueue()
        child, cleanup = store.enqueue(parent), store.enqueue(parent, mode=ON_ANY_TERMINAL)
        if way == "cancel":
            store.cancel(parent)
        elif way == "failure":
            store.end(parent, S.DEAD_LETTERED)
        elif way == "expiry":
            store.lease(parent)
            store.wait(LEASE_SECONDS)
            store.sweep()
        else:
            hold = store.lease(parent)
            store.cancel(parent)
            store.finish(hold, FAILURE, next_due_at=store.now)
        assert store.states(child, cleanup) == [S.CANCELLED, S.SCHEDULED], way


def test_a_released_child_keeps_its_own_later_due_time(store: Store) -> None:
    parent = store.enqueue()
    child = store.enqueue(parent, queue="later", due_at=START.replace(year=2030))
    store.end(parent)
    assert store.claim("later") == []
    store.now = START.replace(year=2030)
    assert [job.id for job in store.claim("later")] == [child]
