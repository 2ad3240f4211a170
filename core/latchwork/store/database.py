"""One database: its engine, its clock, and how a function runs in one transaction on it."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DBAPIError, OperationalError, ResourceClosedError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import StaticPool

from latchwork.clock import SystemClock
from latchwork.errors import MissingExtra, StoreBusy, StoreError, StoreUnavailable
from latchwork.settings import Settings
from latchwork.store import migrate
from latchwork.store.engines import make_engine, reading, writing
from latchwork.store.races import LostRace
from latchwork.tracing import Tracing

P = ParamSpec("P")
T = TypeVar("T")

MAX_TRIES = 5
_FIRST_PAUSE_SECONDS = 0.01


class Database:
    """A database that holds Latchwork's tables.

    ``database_url`` is ``sqlite:///FILE``, ``sqlite://`` or ``postgresql://...``. ``retries``
    counts, by cause, the transactions that were run again after a deadlock or a lost race.
    """

    def __init__(self, database_url: str, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.engine = make_engine(database_url, self.settings)
        self.clock = SystemClock()
        self.retries: Counter[str] = Counter()
        self.tracing = _tracing() if self.settings.tracing else None
        self._ready = False
        self._preparing = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        """Whether this is the embedded engine."""
        return self.engine.dialect.name == "sqlite"

    def read(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """``function(connection, ...)`` in one reading transaction.

        Raises StoreBusy when the database stays locked or a statement takes too long,
        StoreUnavailable when it cannot be reached.
        """
        self.prepare()
        return self._run(reading, function, *args, **kwargs)

    def write(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """``function(connection, ...)`` in one writing transaction, all of it or nothing.

        Deadlocks and serialization failures run it again, at most 5 times, then raise StoreBusy.
        StoreUnavailable leaves it unknown whether a commit under way was carried out.
        """
        self.prepare()
        return self._run(writing, function, *args, **kwargs)

    def prepare(self, *, upgrade: bool = False) -> None:
        """Make the schema of an empty database, once; check it otherwise.

        ``upgrade`` brings an older schema up to date, as a node does. Raises SchemaOutdated when
        the schema is not this version's.
        """
        if not self._ready:
            with self._preparing:
                self._prepare_once(upgrade=upgrade)

    def _prepare_once(self, *, upgrade: bool) -> None:
        if not self._ready:
            self._retrying(lambda: migrate.ensure_schema(self.engine, upgrade=upgrade))
            self._run(reading, self._measure_clock)
            self._ready = True

    def check(self) -> None:
        """Ask the database whether it answers and its schema is this version's.

        Raises SchemaOutdated, StoreBusy or StoreUnavailable when not.
        """
        self._run(reading, migrate.check_version)

    def now(self) -> datetime:
        """The time by the database's clock, which is measured at first use."""
        self.prepare()
        return self.clock.now()

    def synchronise_clock(self) -> None:
        """Measure the offset to PostgreSQL's clock again; SQLite's clock is the host's."""
        self._run(reading, self._measure_clock)

    def _measure_clock(self, connection: Connection) -> None:
        if self.is_sqlite:
            return

        def ask() -> datetime:
            theirs = connection.scalar(select(func.clock_timestamp()))
            assert isinstance(theirs, datetime)  # noqa: S101 - narrows the driver's answer
            return theirs

        self.clock.correct(ask)

    def apart(self) -> "Database":
        """The same database through a pool of its own, which nobody else can exhaust.

        In memory there is one connection for all, so the answer is this object.
        """
        if isinstance(self.engine.pool, StaticPool):
            return self
        url = self.engine.url.render_as_string(hide_password=False)
        other = Database(url, self.settings)
        other.clock = self.clock
        other.retries = self.retries
        if self.is_sqlite:
            # One queue of writers per process: two would race for the file's turn.
            other.engine.latchwork_turn = self.engine.latchwork_turn  # type: ignore[attr-defined]
        return other

    @contextmanager
    def replaced_by(self, other: "Database") -> Iterator[None]:
        """Be ``other`` for a while, for everything that holds this object: for tests."""
        mine = (self.engine, self.clock, self._ready)
        self.engine, self.clock, self._ready = other.engine, other.clock, other._ready
        try:
            yield
        finally:
            self.engine, self.clock, self._ready = mine

    def dispose(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()

    def _run(
        self,
        transaction: Callable[[Engine], AbstractContextManager[Connection]],
        function: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        def once() -> T:
            with transaction(self.engine) as connection:
                return function(connection, *args, **kwargs)

        return self._retrying(once)

    def _retrying(self, work: Callable[[], T]) -> T:
        pause_seconds = _FIRST_PAUSE_SECONDS
        for _ in range(MAX_TRIES - 1):
            try:
                with translated(self):
                    return work()
            except LostRace as lost:
                self.retries[lost.code] += 1
            time.sleep(pause_seconds)
            pause_seconds *= 2
        try:
            with translated(self):
                return work()
        except LostRace as lost:
            self.retries[lost.code] += 1
            raise StoreBusy(
                f"the database refused {MAX_TRIES} times ({lost.code}); try again"
            ) from lost


def _tracing() -> Tracing:
    try:
        return Tracing()
    except ImportError as error:
        raise MissingExtra("tracing", "opentelemetry-api") from error


_RACES = {"40001": "serialization", "40P01": "deadlock", "55P03": "lock"}
_READ_ONLY = "25006"
_STATEMENT_TIMEOUT = "57014"


@contextmanager
def translated(database: Database | None) -> Iterator[None]:
    """Turn driver errors into ours: nothing leaves the store raw (contract section 10)."""
    try:
        yield
    except DBAPIError as error:
        raise _translate(error, database) from error
    except PoolTimeout as error:
        raise StoreBusy("no database connection became free in time; try again") from error
    except ResourceClosedError as error:
        raise StoreUnavailable(f"the database connection broke: {error}") from error


def _translate(error: DBAPIError, database: Database | None) -> Exception:
    code = getattr(error.orig, "sqlstate", None)
    message = str(error.orig)
    if code in _RACES:
        return LostRace(_RACES[code])
    if "database is locked" in message or "database table is locked" in message:
        return LostRace("locked")
    if code == _STATEMENT_TIMEOUT:
        return StoreBusy("the query took too long and was stopped; narrow it")
    if code == _READ_ONLY and database is not None:
        # After a failover the pool may hold connections to the read-only server.
        database.engine.dispose()
        return StoreUnavailable("the database is read-only just now; try again")
    if error.connection_invalidated or _is_connection_trouble(error, code):
        return StoreUnavailable(f"the database cannot be reached: {message.strip()}")
    return StoreError(f"the database refused: {message.strip()}")


def _is_connection_trouble(error: DBAPIError, code: str | None) -> bool:
    if not isinstance(error, OperationalError):
        return False
    return code is None or code[:2] in {"08", "53", "57", "58"}
