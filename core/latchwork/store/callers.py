"""Taking part in a caller's own transaction (contract section 4, A caller's connection)."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from latchwork.errors import InvalidConnection, RetryTransaction
from latchwork.store.database import Database, translated
from latchwork.store.dialects import commits_by_itself
from latchwork.store.races import LostRace

T = TypeVar("T")


def on_callers_connection(
    database: Database, given: Connection | Session, work: Callable[[Connection], T]
) -> T:
    """``work`` inside the caller's transaction, all of it or nothing of it.

    A refused call leaves the caller's transaction as it was. Raises InvalidConnection for a
    connection that cannot carry it, RetryTransaction after a lost race.
    """
    try:
        with translated(None):
            connection = given.connection() if isinstance(given, Session) else given
            _check(database, connection)
            with connection.begin_nested():
                return work(connection)
    except LostRace as lost:
        raise RetryTransaction(
            f"the transaction lost a race ({lost.code}): roll it back and run it again"
        ) from lost


def _check(database: Database, connection: Connection) -> None:
    if not isinstance(connection, Connection):
        raise InvalidConnection("connection must be a SQLAlchemy Connection or Session")
    if connection.dialect.name != database.engine.dialect.name:
        raise InvalidConnection(
            f"the connection speaks {connection.dialect.name}, the jobs are on "
            f"{database.engine.dialect.name}"
        )
    if database.is_sqlite and connection.engine.pool is not database.engine.pool:
        raise InvalidConnection("on SQLite the connection must come from app.engine")
    if commits_by_itself(connection):
        raise InvalidConnection("the connection is in AUTOCOMMIT: it has no transaction to join")
