"""The databases every test may ask for, and the audit that runs after each test that did."""

import os
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url, text

from latchwork.application import Latchwork
from latchwork.settings import Settings
from latchwork.store import migrate
from latchwork.store.database import Database
from latchwork.store.engines import make_engine, reading
from tests.audit import audit
from tests.postgres_server import (
    DatabasePool,
    PostgresInstance,
    postgres_database,
    postgres_instance,
)

DATABASES = ("sqlite", "postgres")

UNDISTURBED_FOLDERS = {"browser", "demo", "worker"}
"""Where tests wait for real time or drive a browser: they run when no other test does."""

RERUN_FOLDERS = UNDISTURBED_FOLDERS | {"cli", "console"}
"""Where tests start real processes (docs/decisions/0010)."""


def pytest_configure() -> None:
    """A run that is told to end takes its PostgreSQL server along, as after Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty, migrated database of the test's own: the test runs once on each kind.

    Audited when the test is over. ``sqlite_url`` and ``postgres_url`` are for tests that make
    sense on one of them only.
    """
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def sqlite_url(
    request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path
) -> Iterator[str]:
    """A migrated SQLite file."""
    path = tmp_path / "latchwork.db"
    shutil.copy(sqlite_template, path)
    yield f"sqlite:///{path}"
    audit_after(request, make_url(f"sqlite:///{path}"))


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, postgres_pool: DatabasePool) -> Iterator[str]:
    """A migrated database on the run's PostgreSQL server."""
    with postgres_pool.database() as url:
        yield url.render_as_string(hide_password=False)
        audit_after(request, url)


@pytest.fixture(params=DATABASES)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without a schema, of each kind, for tests of what makes and checks it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    with postgres_database(request.getfixturevalue("postgres_server")) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture
def own_postgres() -> Iterator[PostgresInstance]:
    """A PostgreSQL server for this test alone, which it may stop, start and cut off."""
    with postgres_instance() as instance:
        yield instance


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The store's database object, on each kind of database."""
    database = Database(database_url, Settings())
    yield database
    database.dispose()


@pytest.fixture
def app(database_url: str) -> Iterator[Latchwork]:
    """An application without job types, on each kind of database."""
    app = Latchwork(database_url)
    yield app
    app.database.dispose()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """The run's PostgreSQL: the one named by LATCHWORK_TEST_POSTGRES_URL, else one of our own."""
    named = os.environ.get("LATCHWORK_TEST_POSTGRES_URL")
    if named:
        yield make_url(named).set(drivername="postgresql+psycopg")
        return
    with postgres_instance() as instance:
        yield instance.url


@pytest.fixture(scope="session")
def postgres_pool(postgres_server: URL) -> Iterator[DatabasePool]:
    """Databases for the tests, copies of a migrated one."""
    with postgres_database(postgres_server) as template:
        make_schema(template)
        assert template.database
        pool = DatabasePool(postgres_server, template.database)
        yield pool
        pool.close()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file that every test's file is a copy of."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    make_schema(make_url(f"sqlite:///{path}"))
    return path


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Latchwork's worker and console run on asyncio."""
    return "asyncio"


def make_schema(url: URL) -> None:
    """Migrate an empty database and leave no connection behind."""
    engine = make_engine(url.render_as_string(hide_password=False), Settings())
    migrate.ensure_schema(engine, upgrade=True)
    engine.dispose()


def audit_after(request: pytest.FixtureRequest, url: URL) -> None:
    """Fail the test whose database breaks a rule, unless it says why it may."""
    marker = request.node.get_closest_marker("no_audit")
    if marker is not None:
        assert marker.args, "no_audit needs a reason"
        assert marker.args[0].strip(), "no_audit needs a reason"
        return
    engine = make_engine(url.render_as_string(hide_password=False), Settings())
    with reading(engine) as connection:
        if url.get_backend_name() == "postgresql":
            # Every table as of the same moment; a SQLite transaction is that anyway.
            connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        violations = audit(connection)
    engine.dispose()
    assert not violations, "\n".join(violations)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark by folder, before ``-m`` chooses (docs/decisions/0010)."""
    folder = item.path.parent.name
    if folder in RERUN_FOLDERS:
        item.add_marker(pytest.mark.flaky(reruns=1))
    if folder in UNDISTURBED_FOLDERS:
        item.add_marker(pytest.mark.undisturbed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test logged is sent between processes, and a lone surrogate cannot be."""
    report = yield
    report.sections = [
        (name, logged.encode(errors="backslashreplace").decode())
        for name, logged in report.sections
    ]
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last.

    The browser's driver keeps an event loop running in this thread, on which no other can run.
    """
    items.sort(key=lambda item: item.path.parent.name == "browser")
