"""Whether the log may have grown, asked so cheaply that a follower may ask many times a second."""

import sqlite3
from typing import Any

from sqlalchemy import Engine, PoolProxiedConnection
from sqlalchemy.exc import DBAPIError

from latchwork.store.hints import can_hint


class LogWatch:
    """Tells an idle follower to spare itself a query.

    On SQLite ``PRAGMA data_version`` changes with every commit of another connection. Elsewhere,
    and in memory where all share one connection, there may always be news.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._watches = engine.dialect.name == "sqlite" and can_hint(engine)
        self._connection: PoolProxiedConnection | None = None
        self._version: int | None = None

    def may_have_news(self) -> bool:
        """Whether somebody may have committed since the last call; True the first time."""
        if not self._watches:
            return True
        try:
            version = self._look()
        except (DBAPIError, sqlite3.Error):
            # The reading that follows meets the same trouble and tells of it.
            self.close()
            return True
        news = version != self._version
        self._version = version
        return news

    def _look(self) -> int:
        if self._connection is None:
            self._version = None
            self._connection = self._engine.raw_connection()
            self._connection.detach()
        cursor = self._connection.cursor()
        cursor.execute("PRAGMA data_version")
        found: Any = cursor.fetchone()
        cursor.close()
        return int(found[0])

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
