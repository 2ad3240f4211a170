from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latchwork.decisions.states import DependencyMode, JobState
from latchwork.views import Graph
from latchwork_console.graph_folding import (
    BOXES_MAX,
    BOXES_PER_RANK_MAX,
    LINKS_MAX,
    fold,
    name_pattern,
    ranks_of,
)
from tests.console.graphs import chain, diamond, fan, graph, node, uid


def test_identical_siblings_fold_into_one_box_that_counts_their_states() -> None:
    given_graph = fan(40)
    nodes = [replace(one, state=JobState.SUCCEEDED) if one.sequence > 30 else one
             for one in given_graph.nodes]  # fmt: skip
    folded = fold(replace(given_graph, nodes=tuple(nodes)))
    assert [len(box.members) for box in folded.boxes] == [1, 40]
    assert folded.boxes[1].counts == {JobState.SCHEDULED: 30, JobState.SUCCEEDED: 10}
    assert [(link.source, link.target) for link in folded.links] == [(0, 1)]
    assert folded.hidden_jobs == 0


def test_steps_that_differ_in_their_numbers_only_fold_under_their_pattern() -> None:
    nodes = [node(0, "list"), *(node(n, "hash", step=f"hash-{n:02d}") for n in range(1, 9))]
    folded = fold(graph(nodes, [(0, n) for n in range(1, 9)]))
    assert [box.name for box in folded.boxes] == ["list", "hash-#"]
    assert name_pattern("a-01/b2") == "a-#/b#"


@pytest.mark.parametrize("difference", ["name", "mode", "parents", "children", "step"])
def test_siblings_that_differ_do_not_fold(difference: str) -> None:
    nodes = [node(0, "list"), *(node(n, "hash", step="s1") for n in range(1, 9)), node(9, "end")]
    edges = [(0, n) for n in range(1, 9)]
    if difference == "name":
        nodes[1] = node(1, "other", step="s1")
    elif difference == "step":
        nodes[1] = node(1, "hash", step="t1")
    elif difference == "mode":
        nodes[1] = node(1, "hash", step="s1", mode=DependencyMode.ON_ANY_TERMINAL)
    elif difference == "children":
        edges.append((1, 9))
    else:
        nodes.append(node(10, "second"))
        edges = [*edges, (10, 1)]
    folded = fold(graph(nodes, edges))
    box_of_first = next(box for box in folded.boxes if uid(1) in {one.id for one in box.members})
    assert not box_of_first.folded
    assert max(len(box.members) for box in folded.boxes) == 7


def test_the_focus_is_a_box_of_its_own() -> None:
    folded = fold(replace(fan(20), focus=uid(7)))
    focused = [box for box in folded.boxes if box.focused]
    assert [box.members[0].id for box in focused] == [uid(7)]
    assert not focused[0].folded


def test_up_to_three_alike_are_shown_side_by_side() -> None:
    assert not any(box.folded for box in fold(fan(3)).boxes)


def test_the_shape_does_not_depend_on_states() -> None:
    before = fan(30)
    after = replace(
        before, nodes=tuple(replace(one, state=JobState.DEAD_LETTERED) for one in before.nodes)
    )
    places = [
        [tuple(member.id for member in box.members) for box in fold(one).boxes]
        for one in (before, after)
    ]
    assert places[0] == places[1]


def test_the_order_in_which_jobs_are_read_does_not_matter() -> None:
    given_graph = fan(12, alike=False)
    turned = replace(given_graph, nodes=given_graph.nodes[::-1], edges=given_graph.edges[::-1])
    assert fold(turned) == fold(given_graph)


def test_a_failure_marks_the_path_it_took_and_no_other() -> None:
    folded = fold(diamond())
    failing = {(link.source, link.target) for link in folded.links if link.failing}
    assert failing == {(0, 1), (1, 3)}
    assert [box.failed for box in folded.boxes] == [True, False, False, False]


def test_beyond_the_bounds_the_neighbourhood_of_the_focus_is_kept() -> None:
    folded = fold(chain(500, focus=250))
    kept = [box.members[0].sequence for box in folded.boxes]
    assert len(kept) == BOXES_MAX
    assert kept == list(range(min(kept), max(kept) + 1))
    assert 250 in kept[90:110]
    assert folded.hidden_jobs == 300


def test_a_rank_never_holds_more_than_its_bound() -> None:
    folded = fold(fan(500, alike=False))
    assert len(folded.boxes) == 1 + BOXES_PER_RANK_MAX
    assert folded.hidden_jobs == 440


@settings(deadline=None)
@given(st.data())
def test_any_graph_folds_within_the_bounds_without_losing_a_job(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 60))
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    edges = {(min(a, b), max(a, b)) for a, b in data.draw(st.lists(pairs, max_size=150)) if a != b}
    names = st.sampled_from(["hash", "join"])
    given_graph = graph(
        [node(number, data.draw(names)) for number in range(size)],
        sorted(edges),
        focus=data.draw(st.integers(0, size - 1)),
    )
    folded = fold(given_graph)
    shown = [member.id for box in folded.boxes for member in box.members]
    assert len(shown) == len(set(shown))
    assert len(shown) + folded.hidden_jobs == size
    assert len(folded.boxes) <= BOXES_MAX
    assert len(folded.links) <= LINKS_MAX
    assert sum(box.focused for box in folded.boxes) == 1
    assert all(link.source < link.target for link in folded.links)


def test_a_rank_is_the_longest_path_to_a_box() -> None:
    assert ranks_of(5, [(0, 1), (1, 2), (0, 2), (2, 4)]) == [0, 1, 2, 0, 3]


def test_a_graph_of_nothing_is_nothing() -> None:
    assert fold(Graph(uid(0), (), ())).boxes == ()
