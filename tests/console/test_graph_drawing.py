from collections.abc import Iterator

import pytest

from latchwork.decisions.states import DependencyMode, JobState
from latchwork_console.graph_drawing import draw
from latchwork_console.graph_layout import Layouts
from tests.console.graphs import HOSTILE_NAMES, chain, diamond, fan, graph, node


@pytest.fixture(scope="module")
def layouts() -> Iterator[Layouts]:
    layouts = Layouts()
    yield layouts
    layouts.close()


def test_a_box_says_its_state_and_what_the_operator_asks_next(layouts: Layouts) -> None:
    drawn = draw(
        graph(
            [
                node(0, "a", JobState.LEASED, attempt=2),
                node(1, "b", JobState.SUCCEEDED, attempt=1),
                node(2, "c", JobState.AWAITING_PARENT, remaining=1),
                node(3, "d", JobState.AWAITING_PARENT, remaining=1,
                     mode=DependencyMode.ON_ANY_TERMINAL),
                node(4, "e", JobState.SCHEDULED, attempt=3),
            ],
            [(0, 2), (1, 2), (0, 3), (1, 4)],
        ),
        layouts,
    )  # fmt: skip
    assert [box.line for box in drawn.boxes] == [
        "Leased · attempt 2",
        "Succeeded",
        "Waits for 1 of 2",
        "Waits for 1 of 1 · on any end",
        "Scheduled · retry after 3",
    ]
    assert [box.focused for box in drawn.boxes] == [True, False, False, False, False]
    assert sorted(link.open for link in drawn.links) == [False, False, True, True]


def test_a_fold_has_a_bar_as_long_as_its_box_whatever_the_states(layouts: Layouts) -> None:
    given_graph = graph(
        [node(0, "list"), *(node(n, "hash", list(JobState)[n % 7]) for n in range(1, 30))],
        [(0, n) for n in range(1, 30)],
    )
    drawn = draw(given_graph, layouts)
    fold = next(box for box in drawn.boxes if box.folded)
    assert fold.short_name == "hash \N{MULTIPLICATION SIGN} 29"
    assert sum(segment.count for segment in fold.bar) == 29
    assert sum(segment.width for segment in fold.bar) == pytest.approx(fold.width - 28, abs=1)
    assert fold.failed
    assert fold.state in (JobState.DEAD_LETTERED, JobState.QUARANTINED)
    assert drawn.jobs == 30
    assert drawn.counts[JobState.SCHEDULED] == 5


def test_names_are_made_visible_and_cut_to_their_box(layouts: Layouts) -> None:
    nodes = [node(n, name) for n, name in enumerate((*HOSTILE_NAMES, "x" * 128, "日本" * 60))]
    drawn = draw(graph(nodes, [(0, n) for n in range(1, len(nodes))]), layouts)
    assert drawn.boxes[2].name == "\\u202egnp.exe"
    assert all("\u202e" not in box.description for box in drawn.boxes)
    assert drawn.boxes[6].short_name == "x" * 25 + "…"
    assert drawn.boxes[7].short_name == "日本" * 6 + "…"
    assert drawn.boxes[7].name == "日本" * 60


def test_the_outline_names_every_box_once_below_its_deepest_parent(layouts: Layouts) -> None:
    drawn = draw(diamond(), layouts)
    assert [(one.box.name, one.depth, one.after) for one in drawn.listed] == [
        ("charge", 0, ()),
        ("receipt", 1, ("charge",)),
        ("ship", 2, ("receipt", "cleanup")),
        ("cleanup", 1, ("charge",)),
    ]
    assert drawn.failing


@pytest.mark.parametrize("given_graph", [chain(500, focus=250), fan(300, alike=False)])
def test_the_outline_holds_what_is_drawn(given_graph: object, layouts: Layouts) -> None:
    drawn = draw(given_graph, layouts)  # type: ignore[arg-type]
    assert {one.box.id for one in drawn.listed} == {box.id for box in drawn.boxes}
    assert len(drawn.listed) == len(drawn.boxes)


def test_a_link_runs_from_side_to_side(layouts: Layouts) -> None:
    drawn = draw(chain(2), layouts)
    first, second = drawn.boxes
    middle = first.y + first.height / 2
    assert drawn.links[0].path == (
        f"M{first.x + first.width:.1f} {middle:.1f}L{second.x:.1f} {middle:.1f}"
    )
