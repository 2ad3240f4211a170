"""The edges that an operator's actions take."""

from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import (
    CANCELLED_SCHEDULED,
    CANCELLED_WAITING,
    EDGES,
    LEGAL_MOVES,
    REQUEUED_DEAD,
    REQUEUED_QUARANTINED,
    cancel_edge,
    requeue_edge,
)

S = JobState


def test_requeue_takes_what_was_given_up_and_nothing_else() -> None:
    edges = {state: requeue_edge(state) for state in JobState}
    assert {state: edge for state, edge in edges.items() if edge} == {
        S.DEAD_LETTERED: REQUEUED_DEAD,
        S.QUARANTINED: REQUEUED_QUARANTINED,
    }


def test_an_immediate_cancel_takes_what_has_not_started_and_nothing_else() -> None:
    edges = {state: cancel_edge(state) for state in JobState}
    assert {state: edge for state, edge in edges.items() if edge} == {
        S.SCHEDULED: CANCELLED_SCHEDULED,
        S.AWAITING_PARENT: CANCELLED_WAITING,
    }


def test_the_table_has_each_row_of_the_contract() -> None:
    numbers = {"B1", "B2", "B3", *map(str, range(1, 13)), "6'", "7'"}
    assert {edge.number for edge in EDGES} == numbers
    assert all(edge.target is not edge.source for edge in EDGES)
    assert (S.SUCCEEDED, S.LEASED) not in LEGAL_MOVES
    details = {edge.number for edge in EDGES if edge.detail}
    assert details == {"6", "7"}
