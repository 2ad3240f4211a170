"""The versions make the schema of store/schema.py, once, and refuse what they do not know."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import IntegrityError

from latchwork.decisions.states import JobState
from latchwork.errors import SchemaOutdated
from latchwork.settings import Settings
from latchwork.store import migrate, schema, service_tables
from latchwork.store.database import Database
from latchwork.store.engines import make_engine, reading, writing
from tests.store.planting import plant_edge, plant_job

S = JobState
RACING_UPGRADES = 6


@pytest.fixture
def engine(empty_database_url: str) -> Iterator[Engine]:
    engine = make_engine(empty_database_url, Settings())
    yield engine
    engine.dispose()


def described(engine: Engine) -> dict[str, Any]:
    """Everything the database says about our tables, but the order it says it in."""
    inspector = inspect(engine)
    ask = (
        inspector.get_columns,
        inspector.get_unique_constraints,
        inspector.get_foreign_keys,
        inspector.get_check_constraints,
        inspector.get_indexes,
    )
    facts: dict[str, Any] = {}
    for table in service_tables.metadata.tables:
        facts[table] = [sorted(plainly(one) for one in question(table)) for question in ask]
        facts[table].append(plainly(inspector.get_pk_constraint(table)))
    return facts


def plainly(fact: Any) -> str:
    """One reflected fact as text; the condition of a partial index is an object otherwise."""
    options = {name: str(value) for name, value in fact.get("dialect_options", {}).items()}
    return str(fact | {"dialect_options": options})


def set_version(connection: Connection, version: str) -> None:
    connection.execute(text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '{version}'"))


def test_the_versions_make_exactly_the_schema(engine: Engine) -> None:
    migrate.ensure_schema(engine, upgrade=False)
    with reading(engine) as connection:
        options = {"version_table": migrate.VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, service_tables.metadata) == []


def test_constraints_and_indexes_are_those_of_the_schema(engine: Engine) -> None:
    migrate.ensure_schema(engine, upgrade=False)
    migrated = described(engine)
    with writing(engine) as connection:
        service_tables.metadata.drop_all(connection)
        service_tables.metadata.create_all(connection)
    assert migrated == described(engine)


def test_racing_upgrades_make_one_schema(engine: Engine, empty_database_url: str) -> None:
    program = (
        "import sys; from latchwork.store.database import Database; "
        "Database(sys.argv[1]).prepare(upgrade=True)"
    )
    command = [sys.executable, "-c", program, empty_database_url]
    racers = [subprocess.Popen(command) for _ in range(RACING_UPGRADES)]
    assert [racer.wait(timeout=60) for racer in racers] == [0] * RACING_UPGRADES
    with reading(engine) as connection:
        migrate.check_version(connection)


def test_upgrading_twice_changes_nothing(engine: Engine) -> None:
    for _ in range(2):
        migrate.ensure_schema(engine, upgrade=True)
    with reading(engine) as connection:
        assert migrate.current_version(connection) == migrate.known_versions()[0]


def test_an_empty_database_has_no_version(engine: Engine) -> None:
    with reading(engine) as connection:
        assert migrate.current_version(connection) is None
        with pytest.raises(SchemaOutdated, match="no Latchwork schema"):
            migrate.check_version(connection)


def test_a_newer_schema_is_refused_by_nodes_and_clients(engine: Engine) -> None:
    migrate.ensure_schema(engine, upgrade=True)
    with writing(engine) as connection:
        set_version(connection, "9999")
    for upgrade in (True, False):
        with pytest.raises(SchemaOutdated, match="9999, newer than this Latchwork"):
            migrate.ensure_schema(engine, upgrade=upgrade)


def test_a_client_refuses_an_older_schema(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate.ensure_schema(engine, upgrade=True)
    versions = migrate.known_versions()
    monkeypatch.setattr(migrate, "known_versions", lambda: ("9999", *versions))
    with pytest.raises(SchemaOutdated, match="run `latchwork migrate`"):
        migrate.ensure_schema(engine, upgrade=False)


def test_a_failed_upgrade_leaves_nothing(engine: Engine) -> None:
    def upgrade_and_fail() -> None:
        with writing(engine) as connection:
            migrate.upgrade_schema(connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        upgrade_and_fail()
    assert inspect(engine).get_table_names() == []


REFUSED_JOBS: dict[str, tuple[tuple[JobState, ...], dict[str, Any]]] = {
    "an unknown state": ((S.SCHEDULED,), {"state": "resting"}),
    "Leased without an owner": ((S.LEASED,), {"owner": None}),
    "Leased without an expiry": ((S.LEASED,), {"lease_expires_at": None}),
    "an owner while Scheduled": ((S.SCHEDULED,), {"owner": "node"}),
    "an end without a time": ((S.SUCCEEDED,), {"terminal_at": None}),
    "a negative latch": ((S.SCHEDULED,), {"parents_remaining": -1}),
    "waiting for nobody": ((S.AWAITING_PARENT,), {"parents_remaining": 0}),
    "a latch while Scheduled": ((S.SCHEDULED,), {"parents_remaining": 1}),
    "more attempts than claims": ((S.SCHEDULED,), {"attempt": 1}),
    "a negative attempt": ((S.SCHEDULED,), {"attempt": -1}),
    "Cancelled without a cause": ((S.CANCELLED,), {"cause_code": None}),
    "a cancel pending while Scheduled": ((S.SCHEDULED,), {"cancel_pending": True}),
}


@pytest.mark.parametrize(("states", "columns"), REFUSED_JOBS.values(), ids=REFUSED_JOBS.keys())
def test_the_database_refuses(
    engine: Engine, states: tuple[JobState, ...], columns: dict[str, Any]
) -> None:
    migrate.ensure_schema(engine, upgrade=False)
    with writing(engine) as connection:
        plant_job(connection, 1, S.SCHEDULED)
    with (
        pytest.raises(IntegrityError, match=r"latchwork_jobs|CHECK"),
        writing(engine) as connection,
    ):
        plant_job(connection, 2, *states, **columns)


def test_the_database_refuses_a_child_older_than_its_parent(engine: Engine) -> None:
    migrate.ensure_schema(engine, upgrade=False)
    with writing(engine) as connection:
        plant_job(connection, 1, S.SCHEDULED)
        plant_job(connection, 2, S.SCHEDULED)
    with writing(engine) as connection, pytest.raises(IntegrityError, match="child_after_parent"):
        plant_edge(connection, parent=2, child=1, is_open=False)


def test_a_parent_with_children_cannot_be_deleted(engine: Engine) -> None:
    migrate.ensure_schema(engine, upgrade=False)
    with writing(engine) as connection:
        plant_job(connection, 1, S.SCHEDULED)
        plant_job(connection, 2, S.SCHEDULED)
        plant_edge(connection, parent=1, child=2, is_open=False)
    with writing(engine) as connection, pytest.raises(IntegrityError, match=r"(?i)foreign key"):
        connection.execute(schema.jobs.delete().where(schema.jobs.c.sequence == 1))


def test_first_use_of_an_empty_database_makes_the_schema(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    assert database.read(migrate.current_version) == migrate.known_versions()[0]
    database.dispose()
