"""The small graph that every operation of the walk acts on, in three situations.

Two roots ``P`` and ``Q``; ``C`` waits for both to succeed, ``D`` for any end of ``P``, ``G`` for
``C``. All are members of one workflow and served by one queue.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import Connection, delete, insert, select

from latchwork.decisions.leases import Hold
from latchwork.decisions.states import JobState
from latchwork.store import schema
from latchwork.store.claiming import ClaimedJob
from latchwork.store.database import Database
from latchwork.store.workflow_rows import insert_workflow
from tests.store.builders import FAILURE, ON_ANY_TERMINAL, START, WORKER, Store

QUEUE = "boundary"
NAMESPACE = UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
WORKFLOW = uuid5(NAMESPACE, "workflow")
NOW = START + timedelta(seconds=30)
"""When the operations run, unless their point is that they come later."""

Rows = dict[str, list[dict[str, Any]]]


def named(name: str) -> UUID:
    """The id of a job of the scene."""
    return uuid5(NAMESPACE, name)


NAMES = {named(name): name for name in ("P", "Q", "C", "D", "G", "X", "Y")}


@dataclass(frozen=True)
class Scene:
    """One situation: every row of every table, and the holds that a worker remembers of it."""

    name: str
    rows: Rows
    holds: dict[str, Hold]


def waiting(store: Store) -> dict[str, Hold]:
    """P waits for its second attempt and Q for its first; a worker remembers P's first."""
    first = claimed(store, 1)
    store.finish(first[0].hold, FAILURE, next_due_at=START - timedelta(seconds=1))
    return {"P": first[0].hold, "Q": Hold(first[0].hold.sequence + 1, 1, 1)}


def running(store: Store) -> dict[str, Hold]:
    """P and Q run."""
    jobs = claimed(store, 2)
    return {"P": jobs[0].hold, "Q": jobs[1].hold}


def ended(store: Store) -> dict[str, Hold]:
    """P is dead-lettered, Q and D succeeded, the others are cancelled."""
    jobs = claimed(store, 2)
    store.finish(jobs[0].hold, FAILURE)
    store.finish(jobs[1].hold)
    [last] = claimed(store, 1)
    store.finish(last.hold)
    assert store.state(named("D")) is JobState.SUCCEEDED
    return {"P": jobs[0].hold, "Q": jobs[1].hold}


SITUATIONS: tuple[Callable[[Store], dict[str, Hold]], ...] = (waiting, running, ended)


def claimed(store: Store, count: int) -> list[ClaimedJob]:
    jobs = store.claim(QUEUE, count, worker=WORKER)
    assert len(jobs) == count
    return jobs


def make_scenes(database: Database) -> dict[str, Scene]:
    """Play every situation once on ``database`` and keep its rows."""
    scenes = {}
    for situation in SITUATIONS:
        database.write(put_rows, {})
        store = Store(database)
        database.write(insert_workflow, WORKFLOW, name="order", now=START)
        graph: list[tuple[str, tuple[str, ...]]] = [
            ("P", ()), ("Q", ()), ("C", ("P", "Q")), ("D", ("P",)), ("G", ("C",)),
        ]  # fmt: skip
        store.enqueue_all(
            [
                store.new_job(
                    *map(named, parents), id=named(name), queue=QUEUE, workflow_id=WORKFLOW,
                    step=name, **({"mode": ON_ANY_TERMINAL} if name == "D" else {}),
                )
                for name, parents in graph
            ]
        )  # fmt: skip
        holds = situation(store)
        name = situation.__name__
        scenes[name] = Scene(name, database.read(get_rows), holds)
    return scenes


def get_rows(connection: Connection) -> Rows:
    """Every row of every table."""
    return {
        table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
        for table in schema.metadata.sorted_tables
    }


def put_rows(connection: Connection, rows: Rows) -> None:
    """Make ``rows`` all there is."""
    for table in reversed(schema.metadata.sorted_tables):
        connection.execute(delete(table))
    for table in schema.metadata.sorted_tables:
        if rows.get(table.name):
            connection.execute(insert(table), rows[table.name])
