"""Reading a database in short transactions: what every part of the monitor stands on."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from latchwork.errors import InvalidValue
from latchwork.store.database import Database
from latchwork.store.dialects import limit_statement_seconds

if TYPE_CHECKING:
    from sqlalchemy import Connection

P = ParamSpec("P")
T = TypeVar("T")

STATEMENT_SECONDS = 5.0
"""No single statement of a reading may take longer on PostgreSQL."""


class Reader:
    """Reads one database and changes nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _now(self) -> datetime:
        return self._database.now()

    def _read(
        self, function: "Callable[Concatenate[Connection, P], T]", *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def bounded(connection: "Connection") -> T:
            limit_statement_seconds(connection, STATEMENT_SECONDS)
            return function(connection, *args, **kwargs)

        return self._database.read(bounded)


def at_least_one(limit: int) -> int:
    """``limit`` if it is positive; raises InvalidValue otherwise."""
    if limit < 1:
        raise InvalidValue("limit", "must be at least 1")
    return limit
