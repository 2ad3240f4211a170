"""The schema is upgraded while jobs are in flight and nodes work; nothing is lost or run twice."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from alembic import command
from sqlalchemy import Connection, bindparam, inspect, make_url, text

from latchwork import JobContext, JobState, Latchwork, SchemaOutdated
from latchwork.jobs import JobType
from latchwork.store import migrate
from latchwork.store.column_types import UtcTime
from latchwork.store.dialects import lock_name
from latchwork.store.engines import reading, writing
from tests.conftest import audit_after
from tests.store.planting import START, plant_edge, plant_job
from tests.worker.conftest import Start, settled, view

S = JobState
PREVIOUS_VERSION = "0001"


@pytest.fixture
def app(request: pytest.FixtureRequest, empty_database_url: str) -> Iterator[Latchwork]:
    """An application on a database without a schema, audited at the end."""
    app = Latchwork(empty_database_url)
    yield app
    app.database.dispose()
    audit_after(request, make_url(empty_database_url))


class Packing:
    """A job type of the wire name that planted jobs have; counts the attempts of each job."""

    def __init__(self, app: Latchwork) -> None:
        self.runs: Counter[UUID] = Counter()
        self.job_type: JobType[[], Any] = app.job("pack")(self._pack)

    def _pack(self, context: JobContext) -> None:
        self.runs[context.job_id] += 1


def make_previous_schema(app: Latchwork, plant: Callable[[Connection], None]) -> None:
    with writing(app.engine) as connection:
        command.upgrade(migrate.alembic_config(connection), PREVIOUS_VERSION)
        plant(connection)


def plant_names(connection: Connection) -> None:
    """The queue and the wire name of planted jobs, as the first enqueue makes them."""
    for table, name in (("latchwork_queues", "default"), ("latchwork_wire_names", "pack")):
        statement = text(f"INSERT INTO {table} (name, created_at) VALUES (:name, :at)")
        at = bindparam("at", START, type_=UtcTime())
        connection.execute(statement.bindparams(at), {"name": name})


def upgrade_once_more(connection: Connection) -> None:
    """What a next version may do: add a table, a column that may be null, and an index."""
    lock_name(connection, "schema upgrade")
    for statement in (
        "CREATE TABLE latchwork_next (name TEXT PRIMARY KEY)",
        "ALTER TABLE latchwork_jobs ADD COLUMN next TEXT",
        "CREATE INDEX ix_latchwork_jobs_next ON latchwork_jobs (next)",
        f"UPDATE {migrate.VERSION_TABLE} SET version_num = '9999'",
    ):
        connection.execute(text(statement))


def test_the_first_node_upgrades_the_previous_schema_and_ends_the_jobs_in_flight(
    app: Latchwork, start: Start
) -> None:
    planted: dict[str, UUID] = {}

    def plant(connection: Connection) -> None:
        plant_names(connection)
        planted["due"] = plant_job(connection, 1, S.SCHEDULED)
        planted["lapsed"] = plant_job(connection, 2, S.SCHEDULED, S.LEASED)
        planted["waiting"] = plant_job(connection, 3, S.AWAITING_PARENT, parents_remaining=2)
        for parent in (1, 2):
            plant_edge(connection, parent=parent, child=3, is_open=True)
        planted["ended"] = plant_job(connection, 4, S.SCHEDULED, S.LEASED, S.SUCCEEDED)

    make_previous_schema(app, plant)
    packing = Packing(app)
    with pytest.raises(SchemaOutdated, match="run `latchwork migrate`"):
        app.monitor.counts()

    node = start(app)
    settled(node, planted["waiting"])

    assert {name: view(app, job).state for name, job in planted.items()} == dict.fromkeys(
        planted, S.SUCCEEDED
    )
    assert packing.runs == Counter([planted["due"], planted["lapsed"], planted["waiting"]])
    assert view(app, planted["lapsed"]).claim_number == 2


def test_nodes_that_come_at_once_upgrade_once_and_all_work(app: Latchwork, start: Start) -> None:
    make_previous_schema(app, plant_names)
    packing = Packing(app)
    url = app.engine.url.render_as_string(hide_password=False)
    nodes = [start(Latchwork(url), queues=["other"]) for _ in range(3)]
    app.database.prepare(upgrade=True)
    job = app.client.enqueue(packing.job_type.bind())
    settled(start(app), job)
    assert view(app, job).state is S.SUCCEEDED
    assert len({node.worker_id for node in nodes}) == 3
    with reading(app.engine) as connection:
        assert migrate.current_version(connection) == migrate.known_versions()[0]


def test_a_node_of_the_previous_version_works_on_while_another_upgrades(
    app: Latchwork, start: Start
) -> None:
    packing = Packing(app)
    node = start(app)
    jobs: list[UUID] = []
    upgraded, enough = threading.Event(), threading.Event()

    def enqueue() -> None:
        after = 0
        while after < 20:
            jobs.append(app.client.enqueue(packing.job_type.bind()))
            after += upgraded.is_set()
            if len(jobs) == 20:
                enough.set()

    enqueuer = threading.Thread(target=enqueue)
    enqueuer.start()
    assert enough.wait(20)
    with writing(app.engine) as connection:
        upgrade_once_more(connection)
    upgraded.set()
    enqueuer.join(20)

    for job in jobs:
        settled(node, job)
    assert packing.runs == Counter(jobs)
    assert {view(app, job).state for job in jobs} == {S.SUCCEEDED}
    assert "latchwork_next" in inspect(app.engine).get_table_names()
