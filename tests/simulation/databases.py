"""The one database in memory of this process, emptied for each world without a migration."""

import sqlite3
from functools import cache

from latchwork.settings import Settings
from latchwork.store import names
from latchwork.store.database import Database


@cache
def _database() -> tuple[Database, sqlite3.Connection]:
    """The one database in memory of this process, and what it looks like when it is empty."""
    database = Database("sqlite://", Settings(sqlite_synchronous="NORMAL"))
    database.prepare()
    template = sqlite3.connect(":memory:")
    _driver(database).backup(template)
    return database, template


def empty_database() -> Database:
    """The database, with a schema and nothing else."""
    database, template = _database()
    template.backup(_driver(database))
    names._known.clear()  # what this process had found stored
    return database


def _driver(database: Database) -> sqlite3.Connection:
    with database.engine.connect() as connection:
        driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver
