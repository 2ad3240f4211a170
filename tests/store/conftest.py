"""What the tests of the store share."""

from collections.abc import Iterator

import pytest

from latchwork.store.database import Database
from tests.store.builders import Store


@pytest.fixture(autouse=True)
def _without_disk_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store does the same whether or not SQLite waits for the disk."""
    monkeypatch.setenv("LATCHWORK_SQLITE_SYNCHRONOUS", "NORMAL")


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    """A database of each kind and a time of the test's own; no test may meet a deadlock."""
    yield Store(database)
    assert database.retries["deadlock"] == 0
    assert database.retries["serialization"] == 0


@pytest.fixture
def postgres_store(postgres_url: str) -> Iterator[Store]:
    """The same on PostgreSQL alone, for tests of its locks."""
    database = Database(postgres_url)
    yield Store(database)
    database.dispose()
    assert database.retries["deadlock"] == 0
    assert database.retries["serialization"] == 0
