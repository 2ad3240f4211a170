"""Reading the dependency graph: recursion over ids only, never over paths."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection, case, false, func, or_, select

from latchwork.errors import AmbiguousAncestor
from latchwork.store.schema import edges, jobs, outputs
from latchwork.views import Graph, GraphEdge, GraphNode, OutputRow

MAX_GRAPH_JOBS = 2_000

_NODE_COLUMNS = (
    jobs.c.id, jobs.c.sequence, jobs.c.wire_name, jobs.c.step, jobs.c.queue, jobs.c.state,
    jobs.c.attempt, jobs.c.parents_remaining, jobs.c.mode,
)  # fmt: skip


def read_graph(connection: Connection, job_id: UUID, *, limit: int) -> Graph | None:
    """The jobs connected to one by dependencies, nearest first; None if the job is unknown."""
    focus = connection.scalar(select(jobs.c.sequence).where(jobs.c.id == job_id))
    if focus is None:
        return None
    limit = min(limit, MAX_GRAPH_JOBS)
    reached = _connected(connection, focus, limit + 1)
    return _graph(connection, job_id, reached[:limit], truncated=len(reached) > limit)


def read_workflow_graph(connection: Connection, workflow_id: UUID, *, limit: int) -> Graph | None:
    """The members of a workflow, in enqueue order; None if it has none."""
    limit = min(limit, MAX_GRAPH_JOBS)
    members = (
        select(jobs.c.sequence)
        .where(jobs.c.workflow_id == workflow_id)
        .order_by(jobs.c.sequence)
        .limit(limit + 1)
    )
    found = list(connection.scalars(members))
    if not found:
        return None
    return _graph(connection, workflow_id, found[:limit], truncated=len(found) > limit)


def _graph(
    connection: Connection, focus: UUID, sequences: Sequence[int], *, truncated: bool
) -> Graph:
    """These jobs, in the order given, and the dependencies between them."""
    places = {sequence: place for place, sequence in enumerate(sequences)}
    found = connection.execute(select(*_NODE_COLUMNS).where(jobs.c.sequence.in_(places)))
    nodes = sorted((GraphNode(*row) for row in found), key=lambda node: places[node.sequence])
    ids = {node.sequence: node.id for node in nodes}
    between = connection.execute(
        select(edges.c.parent_sequence, edges.c.child_sequence, edges.c.is_open)
        .where(edges.c.child_sequence.in_(ids))
        .order_by(edges.c.child_sequence, edges.c.parent_sequence)
    )
    return Graph(
        focus=focus,
        nodes=tuple(nodes),
        edges=tuple(
            GraphEdge(parent=ids[parent], child=ids[child], open=is_open)
            for parent, child, is_open in between
            if parent in ids
        ),
        truncated=truncated,
    )


def _connected(connection: Connection, focus: int, limit: int) -> list[int]:
    """Enqueue numbers reached over edges in either direction.

    Both databases work through a recursion in the order in which it finds its rows, and stop when
    ``limit`` are read: that gives the nearest first, whatever the size of the whole.
    """
    reached = select(jobs.c.sequence).where(jobs.c.sequence == focus).cte("reached", recursive=True)
    neighbour = case(
        (edges.c.parent_sequence == reached.c.sequence, edges.c.child_sequence),
        else_=edges.c.parent_sequence,
    )
    touching = or_(
        edges.c.parent_sequence == reached.c.sequence, edges.c.child_sequence == reached.c.sequence
    )
    reached = reached.union(select(neighbour).join_from(reached, edges, touching))
    return list(connection.scalars(select(reached.c.sequence).limit(limit)))


def ancestor_output(
    connection: Connection,
    sequence: int,
    *,
    parent_id: UUID | None = None,
    wire_name: str | None = None,
    name: str | None = None,
) -> OutputRow:
    """The output of one transitive ancestor of a job: by id, by wire name, or by ``name``.

    A name is that of a workflow step, or else a wire name. A job that is no ancestor answers
    (False, None, None). Raises AmbiguousAncestor when two ancestors bear the name (contract
    section 3).
    """
    above = (
        select(edges.c.parent_sequence.label("sequence"))
        .where(edges.c.child_sequence == sequence)
        .cte("above", recursive=True)
    )
    above = above.union(
        select(edges.c.parent_sequence).join(above, above.c.sequence == edges.c.child_sequence)
    )
    by_step = func.coalesce(jobs.c.step == name, false())
    statement = (
        select(outputs.c.output, jobs.c.state, by_step.label("by_step"))
        .select_from(above)
        .join(jobs, jobs.c.sequence == above.c.sequence)
        .outerjoin(outputs, outputs.c.job_sequence == jobs.c.sequence)
        .order_by(by_step.desc())
        .limit(2)
    )
    if parent_id is not None:
        statement = statement.where(jobs.c.id == parent_id)
    elif wire_name is not None:
        statement = statement.where(jobs.c.wire_name == wire_name)
    else:
        statement = statement.where(or_(jobs.c.step == name, jobs.c.wire_name == name))
    found = connection.execute(statement).all()
    if not found:
        return OutputRow(has_output=False, output=None, state=None)
    if len(found) > 1 and found[0].by_step == found[1].by_step:
        raise AmbiguousAncestor(name or wire_name or str(parent_id))
    output, state, _ = found[0]
    return OutputRow(has_output=output is not None, output=output, state=state)
