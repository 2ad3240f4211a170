"""How a child is born, and what its parents' ends mean, held against the rules read singly."""

from hypothesis import given
from hypothesis import strategies as st

from latchwork.decisions.dependencies import Birth, CancelledBy, OpenEdge, Parent, birth, settle
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.decisions.transitions import BORN_AWAITING, BORN_CANCELLED, BORN_SCHEDULED

S = JobState
ENDS = [S.SUCCEEDED, S.CANCELLED, S.DEAD_LETTERED, S.QUARANTINED]
Graph = tuple[dict[int, JobState], set[OpenEdge]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Jobs that end, and open edges between jobs, each child numbered above its parents."""
    size = draw(st.integers(2, 12))
    modes = [draw(st.sampled_from(DependencyMode)) for _ in range(size)]
    edges = {
        OpenEdge(parent, child, modes[child])
        for child in range(1, size)
        for parent in draw(st.sets(st.integers(0, child - 1), max_size=4))
    }
    ended = draw(st.dictionaries(st.integers(0, size - 1), st.sampled_from(ENDS), min_size=1))
    return ended, edges


def naive(ended: dict[int, JobState], edges: set[OpenEdge]) -> dict[int, CancelledBy]:
    """Cancel one child at a time until no rule applies any more."""
    cancelled: dict[int, CancelledBy] = {}
    states = dict(ended)
    while True:
        failed = {
            child: min(
                edge.parent
                for edge in edges
                if edge.child == child and states.get(edge.parent, S.SUCCEEDED) is not S.SUCCEEDED
            )
            for parent, child, mode in edges
            if mode is DependencyMode.ON_SUCCESS
            and child not in states
            and states.get(parent, S.SUCCEEDED) is not S.SUCCEEDED
        }
        if not failed:
            return cancelled
        child = min(failed)
        parent = failed[child]
        root = cancelled[parent].root if parent in cancelled else parent
        cancelled[child] = CancelledBy(parent, states[parent], root)
        states[child] = S.CANCELLED


def test_a_job_is_born_as_its_parents_stand() -> None:
    on_success, on_any = DependencyMode.ON_SUCCESS, DependencyMode.ON_ANY_TERMINAL
    done, live, waiting = Parent(1, S.SUCCEEDED), Parent(4, S.LEASED), Parent(2, S.AWAITING_PARENT)
    dead, gone = Parent(5, S.DEAD_LETTERED), Parent(3, S.CANCELLED)
    assert birth([], on_success) == Birth(BORN_SCHEDULED)
    assert birth([done], on_success) == Birth(BORN_SCHEDULED)
    assert birth([done, live, waiting], on_success) == Birth(BORN_AWAITING, (4, 2))
    assert birth([live, dead, gone], on_success) == Birth(BORN_CANCELLED, failed_parent=3)
    assert birth([live, dead, gone], on_any) == Birth(BORN_AWAITING, (4,))
    assert birth([dead, gone], on_any) == Birth(BORN_SCHEDULED)
    assert birth([done, live, waiting], on_any).latch == 2


@given(graphs())
def test_settling_cancels_exactly_what_the_rules_cancel(graph: Graph) -> None:
    ended, edges = graph
    assert settle(ended, edges).cancelled == naive(ended, edges)


@given(graphs())
def test_every_edge_from_a_job_that_ended_is_counted_once_or_closes_with_its_child(
    graph: Graph,
) -> None:
    ended, edges = graph
    settlement = settle(ended, edges)
    over = ended.keys() | settlement.cancelled.keys()
    counted = {
        child: sum(edge.child == child and edge.parent in over for edge in edges)
        for child in {edge.child for edge in edges if edge.parent in over} - over
    }
    assert settlement.counted_down == counted
    assert set(settlement.closed) == edges


@given(graphs(), st.randoms())
def test_the_order_of_the_edges_does_not_matter(graph: Graph, chance: object) -> None:
    ended, edges = graph
    shuffled = list(edges)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert settle(ended, shuffled) == settle(ended, edges)
