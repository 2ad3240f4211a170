"""Latches: what happens to the children when jobs end (contract section 3).

Row locks come first and in enqueue order, the reading that decides comes after, and edges are
written only while their child's row is held. No statement both waits for a lock and reads edges.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Integer, select, union, update

from latchwork.decisions.dependencies import OpenEdge, settle
from latchwork.decisions.states import DependencyMode
from latchwork.decisions.transitions import CANCELLED_WAITING, RELEASED
from latchwork.store.dialects import BIG, BatchWrite, array, in_array
from latchwork.store.moves import Cause, LockedJob, Move, lock_jobs
from latchwork.store.races import LostRace
from latchwork.store.schema import edges, jobs

PARENT_FAILED = "parent_failed"


def _open_edges(child: Any) -> Any:
    return (
        select(edges.c.parent_sequence, edges.c.child_sequence, child.c.mode)
        .join(child, child.c.sequence == edges.c.child_sequence)
        .where(edges.c.is_open)
    )


def _edges_below(dialect: str, child: Any) -> Any:
    return _open_edges(child).where(in_array(dialect, edges.c.parent_sequence, "ended", BIG))


@cache
def _children_statement(dialect: str) -> Any:
    return _edges_below(dialect, jobs.alias("child"))


@cache
def _reach_statement(dialect: str) -> Any:
    child = jobs.alias("child")
    waiting = (
        select(edges.c.child_sequence.label("sequence"))
        .join(child, child.c.sequence == edges.c.child_sequence)
        # An open edge says that the child waits. Asking for its state as well would let a planner
        # begin with all jobs that wait.
        .where(edges.c.is_open, child.c.mode == DependencyMode.ON_SUCCESS)
    )
    below_failed = in_array(dialect, edges.c.parent_sequence, "failed", BIG)
    cancelled = waiting.where(below_failed).cte("cancelled", recursive=True)
    # UNION over ids only: a diamond is met once, a path is never spelled out.
    cancelled = cancelled.union(
        waiting.join(cancelled, cancelled.c.sequence == edges.c.parent_sequence)
    )
    still_open = _open_edges(child)
    return union(
        _edges_below(dialect, child),
        still_open.join(cancelled, cancelled.c.sequence == edges.c.parent_sequence),
        # The edges of a job cancelled while it waits, from parents that are still live, close too.
        still_open.where(in_array(dialect, edges.c.child_sequence, "failed", BIG)),
        still_open.join(cancelled, cancelled.c.sequence == edges.c.child_sequence),
    )


def read_reach(
    connection: Connection, ended: Collection[int], failed: Collection[int]
) -> tuple[OpenEdge, ...]:
    """The open edges below jobs that end; ``failed`` are those that end other than Succeeded."""
    # Below jobs that succeed nothing is cancelled: no need to go deeper than their children.
    make = _reach_statement if failed else _children_statement
    parameters = {"ended": array(connection, ended, BIG)}
    if failed:
        parameters["failed"] = array(connection, failed, BIG)
    rows = connection.execute(make(connection.dialect.name), parameters)
    return tuple(OpenEdge(*row) for row in rows)


def lock_below(
    connection: Connection,
    held: dict[int, LockedJob],
    ended: Collection[int],
    failed: Collection[int],
    *,
    wait: bool,
) -> tuple[OpenEdge, ...] | None:
    """Lock every child that ending ``ended`` may touch, reading again until nothing grows.

    ``held`` are the rows locked so far and is added to. None, without ``wait``, when somebody else
    has locked one of them. Rows are waited for in enqueue order alone: LostRace when a newcomer
    stands before a row that is held already and somebody else has it.
    """
    while True:
        reach = read_reach(connection, ended, failed)
        missing = {edge.child for edge in reach} - held.keys()
        if not missing:
            return reach
        in_order = min(missing) > max(held)
        rows = lock_jobs(connection, missing, wait=wait and in_order)
        held.update((row.sequence, row) for row in rows)
        if len(rows) < len(missing):
            if wait:
                raise LostRace("order")
            return None


def settle_children(
    connection: Connection,
    ends: Iterable[Move],
    reach: Sequence[OpenEdge],
    held: Mapping[int, LockedJob],
    now: datetime,
) -> list[Move]:
    """Close the edges below the jobs that end, count latches down, and return the children's moves.

    ``held`` holds the locked rows of the ending jobs and of every child in ``reach``.
    """
    if not reach:
        return []
    settlement = settle({move.job.sequence: move.edge.target for move in ends}, reach)
    _close_edges(connection, settlement.closed)
    _count_down(connection, settlement.counted_down, held)
    named = {n for by in settlement.cancelled.values() for n in (by.parent, by.root)}
    ids = _read_ids(connection, named) if named else {}
    moves = []
    for sequence, by in settlement.cancelled.items():
        cause = Cause(
            PARENT_FAILED,
            parent_id=ids[by.parent],
            parent_state=by.parent_state,
            root_id=ids[by.root],
        )
        moves.append(Move.of(held[sequence], CANCELLED_WAITING, now, cause=cause))
    for sequence, closed in settlement.counted_down.items():
        job = held[sequence]
        if job.parents_remaining == closed:
            moves.append(Move.of(job, RELEASED, now, due_at=max(job.due_at, now)))
    return moves


def _read_ids(connection: Connection, sequences: Collection[int]) -> dict[int, UUID]:
    found = in_array(connection.dialect.name, jobs.c.sequence, "sequences", BIG)
    columns = select(jobs.c.sequence, jobs.c.id).where(found)
    rows = connection.execute(columns, {"sequences": array(connection, sequences, BIG)})
    return {row.sequence: row.id for row in rows}


@cache
def _close_statement(dialect: str) -> BatchWrite:
    def build(row: Any) -> Any:
        this_edge = (edges.c.parent_sequence == row.parent) & (edges.c.child_sequence == row.child)
        return update(edges).where(this_edge, edges.c.is_open).values(is_open=False)

    return BatchWrite(dialect, {"parent": BIG, "child": BIG}, build)


def _close_edges(connection: Connection, closed: Collection[OpenEdge]) -> None:
    parents, children = [edge.parent for edge in closed], [edge.child for edge in closed]
    _close_statement(connection.dialect.name).execute(connection, [parents, children])


@cache
def _count_statement(dialect: str) -> BatchWrite:
    def build(row: Any) -> Any:
        latch = jobs.c.parents_remaining - row.closed
        return update(jobs).where(jobs.c.sequence == row.sequence).values(parents_remaining=latch)

    return BatchWrite(dialect, {"sequence": BIG, "closed": Integer()}, build)


def _count_down(
    connection: Connection, counted: Mapping[int, int], held: Mapping[int, LockedJob]
) -> None:
    """Lower the latches that stay above zero; one that reaches zero is released by its move."""
    still_waiting = {
        sequence: count
        for sequence, count in counted.items()
        if held[sequence].parents_remaining > count
    }
    if still_waiting:
        values = [list(still_waiting), list(still_waiting.values())]
        _count_statement(connection.dialect.name).execute(connection, values)
