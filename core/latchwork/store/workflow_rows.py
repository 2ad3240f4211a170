"""Workflow rows: the workflow itself, and which job is which step of it."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, insert, select

from latchwork.store.dialects import locking
from latchwork.store.schema import jobs, workflows


def insert_workflow(connection: Connection, workflow_id: UUID, *, name: str, now: datetime) -> None:
    """Write down a workflow that starts; its members follow in the same transaction."""
    values = {"id": workflow_id, "name": name, "created_at": now}
    connection.execute(insert(workflows), values)


def lock_members(connection: Connection, workflow_id: UUID) -> dict[str, UUID] | None:
    """The jobs of a workflow by step name, while no other step can be appended; None if unknown."""
    workflow = select(workflows.c.id).where(workflows.c.id == workflow_id)
    if connection.scalar(locking(connection, workflow, workflows, wait=True)) is None:
        return None
    members = select(jobs.c.step, jobs.c.id).where(jobs.c.workflow_id == workflow_id)
    return {row.step: row.id for row in connection.execute(members)}
