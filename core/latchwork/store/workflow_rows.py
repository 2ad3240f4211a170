"""Workflow rows: the workflow itself, and which job is which step of it."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, select

from latchwork.decisions.states import JobState
from latchwork.decisions.workflows import MemberEdge
from latchwork.store.dialects import insert_ignoring, locking_referable
from latchwork.store.schema import edges, jobs, workflows


class Member(NamedTuple):
    """A job of a workflow, as it was read."""

    sequence: int
    id: UUID
    step: str
    state: JobState


def insert_workflow(
    connection: Connection,
    workflow_id: UUID,
    *,
    name: str,
    now: datetime,
    input_json: str | None = None,
    restarted_from: UUID | None = None,
) -> None:
    """Write down a workflow that starts; its members follow in the same transaction.

    A repeat after a lost answer meets its own row, and its members are then duplicates.
    """
    values = {
        "id": workflow_id, "name": name, "created_at": now, "input": input_json,
        "restarted_from": restarted_from,
    }  # fmt: skip
    statement = insert_ignoring(connection.dialect.name, workflows).on_conflict_do_nothing()
    connection.execute(statement, values)


def lock_workflow(connection: Connection, workflow_id: UUID) -> bool:
    """Hold a workflow, so that no step is appended to it; False if it is unknown.

    Always before the rows of its members: whoever acts on a whole workflow comes this way.
    """
    workflow = select(workflows.c.id).where(workflows.c.id == workflow_id)
    return connection.scalar(locking_referable(connection, workflow, workflows)) is not None


def read_members(connection: Connection, workflow_id: UUID) -> list[Member]:
    """Every job of a workflow, in enqueue order."""
    columns = (jobs.c[name] for name in Member._fields)
    members = select(*columns).where(jobs.c.workflow_id == workflow_id).order_by(jobs.c.sequence)
    return [Member(*row) for row in connection.execute(members)]


def read_member_edges(connection: Connection, workflow_id: UUID) -> list[MemberEdge]:
    """Every dependency of a workflow's members; their parents are members themselves."""
    between = (
        select(edges.c.parent_sequence, edges.c.child_sequence)
        .join(jobs, jobs.c.sequence == edges.c.child_sequence)
        .where(jobs.c.workflow_id == workflow_id)
    )
    return [MemberEdge(*row) for row in connection.execute(between)]


def read_input(connection: Connection, workflow_id: UUID) -> str | None:
    """The input that every step of a workflow can read, as JSON text."""
    return connection.scalar(select(workflows.c.input).where(workflows.c.id == workflow_id))
