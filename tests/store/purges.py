"""What the tests of the purge share: passes at a time of the test's own, and workflows to purge."""

from typing import Any
from uuid import UUID

from sqlalchemy import select
from uuid_utils.compat import uuid7

from latchwork.decisions.states import JobState
from latchwork.maintenance.purger import Purger
from latchwork.store import schema
from latchwork.store.enqueueing import insert_jobs
from latchwork.store.workflow_rows import insert_workflow
from tests.clocks import SetClock
from tests.store.builders import Store

DAY = 86_400


def keep_time(store: Store) -> None:
    """Let the monitor, the operator and the purge live at the test's time."""
    store.database.clock = SetClock(lambda: store.now)


def purge(store: Store) -> int:
    """One whole pass; returns how many jobs are stored after it."""
    keep_time(store)
    purger = Purger(store.database)
    while purger.run_once():
        pass
    return len(stored(store))


def stored(store: Store) -> set[UUID]:
    """The ids of all stored jobs."""
    ids = select(schema.jobs.c.id)
    return store.database.read(lambda connection: set(connection.scalars(ids)))


def rows(store: Store, table: Any) -> int:
    """How many rows a table has."""
    return len(store.database.read(lambda connection: connection.execute(select(table)).all()))


def workflow(store: Store, *steps: JobState) -> list[UUID]:
    """A workflow of steps that do not depend on each other, brought to their states in order."""
    workflow_id = uuid7()
    jobs = [store.new_job(workflow_id=workflow_id, step=f"step-{n}") for n in range(len(steps))]

    def start(connection: Any) -> None:
        insert_workflow(connection, workflow_id, name="order", now=store.now)
        insert_jobs(connection, jobs, now=store.now)

    store.database.write(start)
    for job, state in zip(jobs, steps, strict=True):
        if state.terminal:
            store.end(job.id, state)
    return [job.id for job in jobs]
