"""A workflow's status follows from its members; a retry moves what its scope says, no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from latchwork.decisions.states import LIVE_STATES, TERMINAL_STATES, JobState
from latchwork.decisions.workflows import (
    MemberEdge,
    RetryScope,
    WorkflowStatus,
    plan_retry,
    status_of,
)

S = JobState
RUNNING, SUCCEEDED = WorkflowStatus.RUNNING, WorkflowStatus.SUCCEEDED
FAILED, CANCELLED = WorkflowStatus.FAILED, WorkflowStatus.CANCELLED


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ({S.SUCCEEDED}, SUCCEEDED),
        ({S.SUCCEEDED, S.CANCELLED}, CANCELLED),
        ({S.SUCCEEDED, S.CANCELLED, S.DEAD_LETTERED}, FAILED),
        ({S.QUARANTINED, S.CANCELLED}, FAILED),
        (set(TERMINAL_STATES) | {S.SCHEDULED}, RUNNING),
        (set(TERMINAL_STATES) | {S.AWAITING_PARENT}, RUNNING),
        (set(TERMINAL_STATES) | {S.LEASED}, RUNNING),
    ],
)
def test_a_live_member_comes_before_a_failed_one_and_that_before_a_cancelled_one(
    states: set[JobState], status: WorkflowStatus
) -> None:
    assert status_of(states) is status


# 1 succeeded; 2 failed below it; 3 cancelled below 2; 4 succeeded below 2 all the same.
STATES = {1: S.SUCCEEDED, 2: S.DEAD_LETTERED, 3: S.CANCELLED, 4: S.SUCCEEDED}
EDGES = [MemberEdge(1, 2), MemberEdge(2, 3), MemberEdge(2, 4), MemberEdge(1, 4)]


@pytest.mark.parametrize(
    ("scope", "latches", "reopened"),
    [
        (RetryScope.UNFINISHED, {2: 0, 3: 1}, {(2, 3)}),
        (RetryScope.DOWNSTREAM, {2: 0, 3: 1, 4: 1}, {(2, 3), (2, 4)}),
        (RetryScope.ALL, {1: 0, 2: 1, 3: 1, 4: 2}, set(EDGES)),
    ],
)
def test_a_scope_moves_its_members_and_opens_the_edges_between_them(
    scope: RetryScope, latches: dict[int, int], reopened: set[tuple[int, int]]
) -> None:
    plan = plan_retry(STATES, EDGES, scope)
    assert plan.latches == latches
    assert set(plan.reopened) == reopened


def test_nothing_is_retried_where_everything_succeeded_unless_all_is_asked_for() -> None:
    states = dict.fromkeys((1, 2), S.SUCCEEDED)
    assert plan_retry(states, [MemberEdge(1, 2)], RetryScope.UNFINISHED).latches == {}
    assert plan_retry(states, [MemberEdge(1, 2)], RetryScope.DOWNSTREAM).latches == {}
    assert plan_retry(states, [MemberEdge(1, 2)], RetryScope.ALL).latches == {1: 0, 2: 1}


graphs = some.integers(2, 8).flatmap(
    lambda size: some.tuples(
        some.lists(some.sampled_from(sorted(TERMINAL_STATES)), min_size=size, max_size=size),
        some.sets(
            some.tuples(some.integers(1, size), some.integers(1, size)).filter(
                lambda pair: pair[0] < pair[1]
            )
        ),
    )
)


@given(graphs, some.sampled_from(RetryScope))
def test_a_latch_is_the_number_of_open_edges_and_a_parent_is_never_left_behind(
    graph: tuple[list[JobState], set[tuple[int, int]]], scope: RetryScope
) -> None:
    listed, pairs = graph
    states = dict(enumerate(listed, start=1))
    edges = [MemberEdge(*pair) for pair in pairs]
    plan = plan_retry(states, edges, scope)
    for child, latch in plan.latches.items():
        assert latch == sum(edge.child == child for edge in plan.reopened)
    unfinished = {one for one, state in states.items() if state is not S.SUCCEEDED}
    assert unfinished <= plan.latches.keys()
    # What stays put has succeeded, so nobody moved waits for it, nor is failed by it.
    assert all(states[one] is S.SUCCEEDED for one in states.keys() - plan.latches.keys())
    if scope is RetryScope.DOWNSTREAM:
        assert all(edge.child in plan.latches for edge in edges if edge.parent in plan.latches)


def test_every_state_decides_some_status() -> None:
    assert {status_of({state}) for state in JobState} == set(WorkflowStatus)
    assert {status_of({state}) for state in LIVE_STATES} == {RUNNING}
