"""The dependency graph around a job, and the outputs a job may read from its ancestors."""

from uuid import UUID

import pytest
from sqlalchemy import event

from latchwork.decisions.states import JobState
from latchwork.errors import AmbiguousAncestor
from latchwork.store.database import Database
from latchwork.store.graph_queries import ancestor_output
from latchwork.views import Graph, OutputRow
from tests.store.scene import Scene

S = JobState
ABSENT = OutputRow(has_output=False, output=None, state=None)


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def graph(scene: Scene, job_id: UUID, limit: int = 2_000) -> Graph:
    found = scene.monitor.graph(job_id, limit=limit)
    assert found is not None
    return found


def chain(scene: Scene, length: int) -> list[UUID]:
    made = [scene.enqueue()]
    while len(made) < length:
        made.append(scene.enqueue(parents=(made[-1],)))
    return made


def read(scene: Scene, reader: UUID, parent: UUID | str) -> OutputRow:
    by = {"name": parent} if isinstance(parent, str) else {"parent_id": parent}
    return scene.database.read(ancestor_output, scene.job(reader).sequence, **by)


def test_the_graph_holds_all_that_is_connected_and_nothing_else(scene: Scene) -> None:
    root = scene.enqueue()
    left, right = scene.enqueue(parents=(root,)), scene.enqueue(parents=(root,))
    join = scene.enqueue(parents=(left, right))
    cousin = scene.enqueue()
    below_both = scene.enqueue(parents=(cousin, left))
    scene.enqueue(parents=(scene.enqueue(),))
    for focus in (root, left, join, cousin):
        found = graph(scene, focus)
        assert found.nodes[0].id == focus
        assert {node.id for node in found.nodes} == {root, left, right, join, cousin, below_both}
        assert {(edge.parent, edge.child) for edge in found.edges} == {
            (root, left), (root, right), (left, join), (right, join),
            (cousin, below_both), (left, below_both),
        }  # fmt: skip
        assert all(edge.open for edge in found.edges)
        assert not found.truncated


def test_a_settled_edge_is_closed(scene: Scene) -> None:
    parent, child = chain(scene, 2)
    scene.run(S.SUCCEEDED)
    (edge,) = graph(scene, child).edges
    assert edge.parent == parent
    assert not edge.open


def test_a_graph_over_its_bound_keeps_the_nearest(scene: Scene) -> None:
    made = chain(scene, 21)
    found = graph(scene, made[10], limit=7)
    assert found.truncated
    assert {node.id for node in found.nodes} == set(made[7:14])
    assert len(found.edges) == 6


def test_a_wide_fan_is_cut_at_the_bound(scene: Scene) -> None:
    root = scene.enqueue()
    scene.enqueue_many(300, parents=(root,))
    found = graph(scene, root, limit=100)
    assert found.truncated
    assert len(found.nodes) == 100
    assert len(found.edges) == 99


def test_the_number_of_statements_does_not_depend_on_the_size(scene: Scene) -> None:
    small, large = chain(scene, 2), chain(scene, 60)

    def statements(job_id: UUID) -> int:
        seen: list[str] = []

        def note(*call: object) -> None:
            seen.append(str(call[2]))

        event.listen(scene.database.engine, "before_cursor_execute", note)
        graph(scene, job_id)
        event.remove(scene.database.engine, "before_cursor_execute", note)
        return len(seen)

    assert statements(small[0]) == statements(large[30])


def test_an_output_is_read_from_any_ancestor(scene: Scene) -> None:
    first = scene.enqueue("charge")
    second = scene.enqueue("pack", parents=(first,), step="packing")
    third = scene.enqueue("ship", parents=(second,))
    scene.run(S.SUCCEEDED, output='{"n":1}')
    scene.run(S.SUCCEEDED)
    assert read(scene, third, first) == OutputRow(True, '{"n":1}', S.SUCCEEDED)
    assert read(scene, third, "charge") == OutputRow(True, '{"n":1}', S.SUCCEEDED)
    assert read(scene, third, "packing") == OutputRow(False, None, S.SUCCEEDED)
    assert read(scene, third, "pack") == OutputRow(False, None, S.SUCCEEDED)


def test_who_is_no_ancestor_has_no_output_to_read(scene: Scene) -> None:
    root = scene.enqueue("charge")
    left = scene.enqueue("left", parents=(root,))
    right = scene.enqueue("right", parents=(root,))
    scene.run(S.SUCCEEDED, output="1")
    scene.run(S.SUCCEEDED, output="2")
    assert read(scene, right, left) == ABSENT
    assert read(scene, right, "left") == ABSENT
    assert read(scene, root, right) == ABSENT
    assert read(scene, right, right) == ABSENT
    assert read(scene, right, UUID(int=5)) == ABSENT


def test_two_ancestors_of_one_name_are_ambiguous(scene: Scene) -> None:
    first = scene.enqueue("hash")
    second = scene.enqueue("hash", parents=(first,))
    last = scene.enqueue("report", parents=(first, second))
    with pytest.raises(AmbiguousAncestor):
        read(scene, last, "hash")
    assert read(scene, last, first).state is S.SCHEDULED
    assert read(scene, second, "hash").state is S.SCHEDULED


def test_a_diamond_is_one_ancestor(scene: Scene) -> None:
    root = scene.enqueue("root")
    sides = tuple(scene.enqueue("side", parents=(root,)) for _ in range(16))
    join = scene.enqueue("join", parents=sides)
    assert read(scene, join, "root").state is S.SCHEDULED
