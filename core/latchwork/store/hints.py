"""Wake-up hints: a waiting node hears of a commit early. They carry no correctness (section 4)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from sqlalchemy import Engine
from sqlalchemy.pool import StaticPool

from latchwork.store.dialects import DUE_CHANNEL

SQLITE_LOOK_SECONDS = 0.005
"""How often SQLite's version number is looked at: 7 microseconds each time."""


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
    """``PRAGMA data_version`` changes with every commit of another connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._version = self._look()

    def wait(self, timeout_seconds: float) -> set[str | None]:
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            version = self._look()
            if version != self._version:
                self._version = version
                return {None}
            time.sleep(SQLITE_LOOK_SECONDS)
        return set()

    def _look(self) -> int:
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version


def can_hint(engine: Engine) -> bool:
    """Whether commits can be heard of: not in memory, where all share one connection."""
    return not isinstance(engine.pool, StaticPool)


@contextmanager
def listening(engine: Engine) -> Iterator[Hints]:
    """Hear of commits through a connection of one's own.

    Whatever the driver raises comes out of here: the caller opens a new one after a pause.
    """
    pooled = engine.raw_connection()
    pooled.detach()
    # Read after leaving the pool, whose record of it may be taken by others: now it is ours alone.
    connection: Any = pooled.dbapi_connection
    try:
        if engine.dialect.name == "sqlite":
            yield _SqliteHints(connection)
        else:
            yield _PostgresHints(connection)
    finally:
        # Not through the pool, which would first roll back, and log the error of a broken one.
        connection.close()
