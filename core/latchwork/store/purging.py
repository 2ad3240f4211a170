"""Purging: jobs whose time is over leave the store, children first (contract section 5).

A pass walks the ended jobs from those that ended last: children mostly end after their parents, so
a whole chain goes in one pass, and what must stay never stands in the way of the rest. What a pass
finds is decided again when its rows are locked. Locked rows are passed over: a purge waits for
nobody, and an enqueue that waits for the parent it purges finds that the parent is gone.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Connection,
    Uuid,
    delete,
    exists,
    func,
    literal,
    not_,
    select,
    tuple_,
)

from latchwork.decisions.observers import ACTIVE_FOR
from latchwork.decisions.retention import AUDIT_KEPT, NODES_KEPT, Retention, may_go
from latchwork.decisions.states import JobState
from latchwork.store import counters
from latchwork.store.column_types import UtcTime
from latchwork.store.dialects import BIG, array, in_array, insert_ignoring, locking, try_lock
from latchwork.store.observer_places import passed_by_all
from latchwork.store.schema import (
    audit,
    edges,
    facts,
    job_tags,
    jobs,
    nodes,
    outputs,
    transitions,
    workflows,
)
from latchwork.store.transition_log import PURGED_POSITION, read_purged_position

BATCH = 500

_ID: Uuid[UUID] = Uuid()


class Place(NamedTuple):
    """How far a pass has come."""

    ended_at: datetime
    sequence: int


class Group(NamedTuple):
    """Jobs that go together: one on its own, or all members of a workflow."""

    sequences: tuple[int, ...]
    workflow_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What one step of a pass found to purge, and where the next goes on; None at the pass's end.

    ``workflows`` were looked at: their other members need not be.
    """

    groups: tuple[Group, ...]
    workflows: frozenset[UUID]
    place: Place | None


def find(
    connection: Connection,
    retention: Retention,
    *,
    now: datetime,
    place: Place | None = None,
    seen: Collection[UUID] = (),
) -> Found:
    """What of the next ``BATCH`` ended jobs from ``place`` on may go. Takes no locks."""
    rows = connection.execute(_walk(now - retention.shortest, place)).all()
    free = [
        Group((row.sequence,))
        for row in rows
        if row.workflow_id is None and retention.passed(row.state, row.terminal_at, now)
    ]
    met = dict.fromkeys(row.workflow_id for row in rows if row.workflow_id is not None)
    unseen = [one for one in met if one not in seen]
    groups = [*free, *_whole_workflows(connection, unseen, retention, now)]
    return Found(
        groups=tuple(_going(connection, groups, now)),
        workflows=frozenset(unseen),
        place=Place(*rows[-1][:2]) if len(rows) == BATCH else None,
    )


def purge(
    connection: Connection, groups: Sequence[Group], retention: Retention, *, now: datetime
) -> int:
    """Delete those of ``groups`` that may still go, with all that belongs to them; how many jobs.

    0 when another node purges just now.
    """
    if not groups or not try_lock(connection, "purge"):
        return 0
    rows, whole = _lock(connection, groups, retention, now)
    going = _going(connection, whole, now)
    gone = [rows[sequence] for group in going for sequence in group.sequences]
    if gone:
        _delete(connection, [row.sequence for row in gone], now)
        left = [(r.queue, r.wire_name, r.state, None, now, r.state_since) for r in gone]
        counters.append(connection, left)
        _delete_by(connection, workflows.c.id, [g.workflow_id for g in going if g.workflow_id], _ID)
    return len(gone)


def purge_records(connection: Connection, *, now: datetime) -> None:
    """Delete the oldest audit rows after 90 days, and nodes that have not been seen for a day."""
    oldest = select(audit.c.id, audit.c.at).order_by(audit.c.id).limit(BATCH).subquery()
    over = select(oldest.c.id).where(oldest.c.at < now - AUDIT_KEPT)
    connection.execute(delete(audit).where(audit.c.id.in_(over)))
    connection.execute(delete(nodes).where(nodes.c.last_seen_at < now - NODES_KEPT))


def _walk(cutoff: datetime, place: Place | None) -> Any:
    key = (jobs.c.terminal_at, jobs.c.sequence)
    rows = select(*key, jobs.c.state, jobs.c.workflow_id).where(
        jobs.c.terminal_at.is_not(None), jobs.c.terminal_at <= cutoff
    )
    if place is not None:
        edge = (literal(place.ended_at, UtcTime()), literal(place.sequence, BIG))
        rows = rows.where(tuple_(*key) < tuple_(*edge))
    return rows.order_by(*(column.desc() for column in key)).limit(BATCH)


def _whole_workflows(
    connection: Connection, ids: Collection[UUID], retention: Retention, now: datetime
) -> list[Group]:
    """The members of those workflows whose time is over."""
    if not ids:
        return []
    found = in_array(connection.dialect.name, jobs.c.workflow_id, "ids", _ID)
    parameters = {"ids": array(connection, ids, _ID)}
    latest = select(jobs.c.workflow_id, jobs.c.state, func.max(jobs.c.terminal_at)).where(found)
    ends: defaultdict[UUID, list[tuple[JobState, datetime | None]]] = defaultdict(list)
    for workflow_id, state, ended_at in connection.execute(
        latest.group_by(jobs.c.workflow_id, jobs.c.state), parameters
    ):
        ends[workflow_id].append((state, ended_at))
    over = [one for one in ends if retention.passed_together(ends[one], now)]
    members: defaultdict[UUID, list[int]] = defaultdict(list)
    columns = select(jobs.c.workflow_id, jobs.c.sequence).where(found)
    for workflow_id, sequence in connection.execute(columns, {"ids": array(connection, over, _ID)}):
        members[workflow_id].append(sequence)
    return [Group(tuple(members[one]), one) for one in over]


def _lock(
    connection: Connection, groups: Sequence[Group], retention: Retention, now: datetime
) -> tuple[dict[int, Any], list[Group]]:
    """Lock what is free: workflows, which hold new steps off, then jobs in enqueue order.

    Returns the rows of jobs that are still over, and the groups that are locked whole.
    """
    ids = [group.workflow_id for group in groups if group.workflow_id is not None]
    found = in_array(connection.dialect.name, workflows.c.id, "ids", _ID)
    held = select(workflows.c.id).where(found).order_by(workflows.c.id)
    locked = connection.scalars(
        locking(connection, held, workflows, wait=False), {"ids": array(connection, ids, _ID)}
    ).all()
    whole = [group for group in groups if group.workflow_id is None]
    whole += _whole_workflows(connection, locked, retention, now)
    statement = locking(connection, _lock_statement(connection.dialect.name), jobs, wait=False)
    wanted = sorted(sequence for group in whole for sequence in group.sequences)
    rows = {
        row.sequence: row
        for row in connection.execute(statement, {"sequences": array(connection, wanted, BIG)})
    }

    def over(group: Group) -> bool:
        if any(one not in rows or rows[one].terminal_at is None for one in group.sequences):
            return False
        ends = [(rows[one].state, rows[one].terminal_at) for one in group.sequences]
        return retention.passed_together(ends, now)

    return rows, [group for group in whole if over(group)]


@cache
def _lock_statement(dialect: str) -> Any:
    names = ("sequence", "state", "terminal_at", "state_since", "queue", "wire_name")
    found = in_array(dialect, jobs.c.sequence, "sequences", BIG)
    return select(*(jobs.c[name] for name in names)).where(found).order_by(jobs.c.sequence)


def _going(connection: Connection, groups: Sequence[Group], now: datetime) -> list[Group]:
    """Those of ``groups`` that neither a child nor an observer keeps."""
    sequences = [sequence for group in groups for sequence in group.sequences]
    if not sequences:
        return []
    parameters = {"sequences": array(connection, sequences, BIG)}
    inside, outside = _children_statements(connection.dialect.name)
    children: defaultdict[int, list[int]] = defaultdict(list)
    for parent, child in connection.execute(inside, parameters):
        children[parent].append(child)
    kept = {*connection.scalars(outside, parameters), *_observed(connection, sequences, now)}
    by_jobs = {group.sequences: group for group in groups}
    return [by_jobs[tuple(one)] for one in may_go(list(by_jobs), children, kept)]


@cache
def _children_statements(dialect: str) -> tuple[Any, Any]:
    """The edges among some jobs, and those of them that have a child which is none of them."""
    among = in_array(dialect, edges.c.child_sequence, "sequences", BIG)
    inside = select(edges.c.parent_sequence, edges.c.child_sequence).where(
        among, in_array(dialect, edges.c.parent_sequence, "sequences", BIG)
    )
    # Ends at the first such child, however many there are.
    other = exists().where(edges.c.parent_sequence == jobs.c.sequence, not_(among))
    outside = select(jobs.c.sequence).where(
        in_array(dialect, jobs.c.sequence, "sequences", BIG), other
    )
    return inside, outside


def _observed(connection: Connection, sequences: Iterable[int], now: datetime) -> set[int]:
    """Which jobs have a log row that an active observer has not passed yet."""
    found = in_array(connection.dialect.name, transitions.c.job_sequence, "sequences", BIG)
    rows = select(transitions.c.job_sequence).where(
        found, transitions.c.position > passed_by_all(now - ACTIVE_FOR)
    )
    return set(connection.scalars(rows, {"sequences": array(connection, sequences, BIG)}))


def _delete(connection: Connection, sequences: Collection[int], now: datetime) -> None:
    """Delete jobs and what is theirs, and remember how far the log is not whole any more."""
    found = in_array(connection.dialect.name, transitions.c.job_sequence, "sequences", BIG)
    parameters = {"sequences": array(connection, sequences, BIG)}
    last = connection.scalar(select(func.max(transitions.c.position)).where(found), parameters)
    if last is not None:
        _remember_purged(connection, last, now)
    for column in (
        transitions.c.job_sequence, edges.c.child_sequence, job_tags.c.job_sequence,
        outputs.c.job_sequence, jobs.c.sequence,
    ):  # fmt: skip
        _delete_by(connection, column, sequences, BIG)


def _delete_by(connection: Connection, column: Any, values: Collection[Any], kind: Any) -> None:
    if values:
        found = in_array(connection.dialect.name, column, "values", kind)
        parameters = {"values": array(connection, values, kind)}
        connection.execute(delete(column.table).where(found), parameters)


def _remember_purged(connection: Connection, position: int, now: datetime) -> None:
    if position <= read_purged_position(connection):
        return
    values = {"value": str(position), "since": now}
    connection.execute(
        insert_ignoring(connection.dialect.name, facts)
        .values(name=PURGED_POSITION, **values)
        .on_conflict_do_update(index_elements=[facts.c.name], set_=values)
    )
