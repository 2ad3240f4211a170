"""Wake-up hints: a waiting node hears of a commit early. They carry no correctness (section 4)."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Engine
from sqlalchemy.pool import StaticPool

from latchwork.store.column_types import from_microseconds
from latchwork.store.database import Database
from latchwork.store.dialects import DUE_CHANNEL
from latchwork.store.schema import jobs

SQLITE_LOOK_SECONDS = 0.002
"""How often SQLite's version number is looked at: 7 microseconds each time."""

_FIRST_DUE = (
    f"SELECT due_at FROM {jobs.name} WHERE queue = ? AND state = 'scheduled'"  # noqa: S608 - ours
    " ORDER BY due_at LIMIT 1"
)


class Hints(Protocol):
    """A connection that hears of commits."""

    def wait(self, timeout_seconds: float) -> set[str | None]:
        """The queues that may have due work, None for any; empty when nothing came in time."""


class _PostgresHints:
    """LISTEN on the channel of due queues."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        connection.autocommit = True
        connection.execute(f"LISTEN {DUE_CHANNEL}")

    def wait(self, timeout_seconds: float) -> set[str | None]:
        heard = self._connection.notifies(timeout=timeout_seconds, stop_after=1)
        return {notice.payload for notice in heard}


class _SqliteHints:
    """``PRAGMA data_version`` changes with every commit of another connection.

    Most are the node's own claims and outcomes: only queues with a due job, or whose next due time
    has changed, are worth a claim.
    """

    def __init__(self, connection: Any, database: Database, queues: Sequence[str]) -> None:
        self._connection = connection
        self._database = database
        self._first_due: dict[str, datetime | None] = dict.fromkeys(queues)
        self._version = self._look()

    def wait(self, timeout_seconds: float) -> set[str | None]:
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            version = self._look()
            if version != self._version:
                self._version = version
                if queues := self._worth_a_claim():
                    return queues
            time.sleep(SQLITE_LOOK_SECONDS)
        return set()

    def _look(self) -> int:
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def _worth_a_claim(self) -> set[str | None]:
        now = self._database.clock.now()
        found: set[str | None] = set()
        for queue, known in self._first_due.items():
            # Read to the end: a reader left open would keep the log from being cut.
            rows = self._connection.execute(_FIRST_DUE, (queue,)).fetchall()
            due_at = from_microseconds(rows[0][0]) if rows else None
            self._first_due[queue] = due_at
            if due_at is not None and (due_at <= now or due_at != known):
                found.add(queue)
        return found


def can_hint(engine: Engine) -> bool:
    """Whether commits can be heard of: not in memory, where all share one connection."""
    return not isinstance(engine.pool, StaticPool)


@contextmanager
def listening(database: Database, queues: Sequence[str]) -> Iterator[Hints]:
    """Hear of commits that may concern ``queues``, through a connection of one's own.

    Whatever the driver raises comes out of here: the caller opens a new one after a pause.
    """
    pooled = database.engine.raw_connection()
    pooled.detach()
    # Read after leaving the pool, whose record of it may be taken by others: now it is ours alone.
    connection: Any = pooled.dbapi_connection
    try:
        if database.is_sqlite:
            yield _SqliteHints(connection, database, queues)
        else:
            yield _PostgresHints(connection)
    finally:
        # Not through the pool, which would first roll back, and log the error of a broken one.
        connection.close()
