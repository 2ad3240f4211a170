"""Workflow rows: the workflow itself, and which job is which step of it."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select

from latchwork.store.dialects import insert_ignoring, locking
from latchwork.store.schema import jobs, workflows


def insert_workflow(connection: Connection, workflow_id: UUID, *, name: str, now: datetime) -> None:
    """Write down a workflow that starts; its members follow in the same transaction.

    A repeat after a lost answer meets its own row, and its members are then duplicates.
    """
    values = {"id": workflow_id, "name": name, "created_at": now}
    statement = insert_ignoring(connection.dialect.name, workflows).on_conflict_do_nothing()
    connection.execute(statement, values)


def lock_members(connection: Connection, workflow_id: UUID) -> dict[str, UUID] | None:
    """The jobs of a workflow by step name, while no other step can be appended; None if unknown."""
    workflow = select(workflows.c.id).where(workflows.c.id == workflow_id)
    if connection.scalar(locking(connection, workflow, workflows, wait=True)) is None:
        return None
    members = select(jobs.c.step, jobs.c.id).where(jobs.c.workflow_id == workflow_id)
    return {row.step: row.id for row in connection.execute(members)}
