"""Engines: how connections to SQLite and PostgreSQL are opened, and how transactions begin."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import StaticPool

from latchwork.errors import InvalidValue
from latchwork.settings import Settings

READING = "latchwork_reading"
"""Execution option: begin without taking SQLite's write lock."""

_TURN_POLL_SECONDS = 0.001


def make_engine(database_url: str, settings: Settings) -> Engine:
    """An engine for ``sqlite:///FILE``, ``sqlite://`` (in memory) or ``postgresql://...``.

    Raises InvalidValue for anything else. ``postgresql://`` means psycopg 3.
    """
    try:
        url = make_url(database_url)
    except ArgumentError as error:
        raise InvalidValue("database_url", "is not a database address") from error
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, settings)
    if url.get_backend_name() == "postgresql":
        return _postgres_engine(url, settings)
    raise InvalidValue("database_url", "must begin with sqlite:// or postgresql://")


def _postgres_engine(url: URL, settings: Settings) -> Engine:
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="READ COMMITTED",
        pool_size=settings.pool_size,
        max_overflow=settings.pool_size,
        pool_use_lifo=True,
        connect_args={"connect_timeout": 5, "application_name": "latchwork"},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # Plans are cached while tables are small; without this a plan that scans a small table
        # would be used again when it has grown to a million rows.
        connection.autocommit = True
        connection.execute("SET enable_seqscan = off")
        # A scan that no index spares counts as so dear then that the server would compile the
        # plan, for hundreds of milliseconds, to read a table of a few rows.
        connection.execute("SET jit = off")
        connection.execute("SET timezone = 'UTC'")
        connection.autocommit = False

    return engine


def _sqlite_engine(url: URL, settings: Settings) -> Engine:
    in_memory = not url.database or url.database == ":memory:"
    engine = create_engine(
        url.set(drivername="sqlite+pysqlite"),
        connect_args={
            "timeout": settings.sqlite_busy_seconds,
            "isolation_level": None,
            "check_same_thread": False,
        },
        **({"poolclass": StaticPool} if in_memory else {"pool_size": settings.pool_size}),
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {settings.sqlite_synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA temp_store = MEMORY")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get("isolation_level") == "AUTOCOMMIT":
            return
        connection.exec_driver_sql("BEGIN" if options.get(READING) else "BEGIN IMMEDIATE")

    turn = _MemoryTurn() if in_memory else _FileTurn(f"{url.database}-turn", settings)
    engine.latchwork_turn = turn  # type: ignore[attr-defined]
    return engine


class _MemoryTurn:
    """One connection serves every thread: every transaction waits for its turn."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._lock:
            yield

    writing = reading


class _FileTurn:
    """Writers of one SQLite file take turns before BEGIN IMMEDIATE.

    SQLite's own busy handler backs off and starves whoever waits longest. A writer that does not
    get its turn in time goes on all the same: the database's own lock decides.
    """

    def __init__(self, path: str, settings: Settings) -> None:
        self._path = path
        self._seconds = settings.sqlite_busy_seconds
        self._threads = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[None]:
        yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        deadline = time.monotonic() + self._seconds
        mine = self._threads.acquire(timeout=self._seconds)
        descriptor = -1
        try:
            with suppress(OSError):
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._lock_file(descriptor, deadline)
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)  # closing gives the file lock back
            if mine:
                self._threads.release()

    def _lock_file(self, descriptor: int, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return
                time.sleep(_TURN_POLL_SECONDS)
            else:
                return


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that only reads."""
    turn = getattr(engine, "latchwork_turn", None)
    if turn is None:
        with engine.connect() as connection, connection.begin():
            yield connection
        return
    with (
        turn.reading(),
        engine.connect().execution_options(**{READING: True}) as connection,
        connection.begin(),
    ):
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that writes: on SQLite it holds the write lock from its first statement."""
    turn = getattr(engine, "latchwork_turn", None)
    if turn is None:
        with engine.begin() as connection:
            yield connection
        return
    with turn.writing(), engine.begin() as connection:
        yield connection
