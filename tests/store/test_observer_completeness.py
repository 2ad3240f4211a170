"""Every committed row is delivered, in order per job, whatever its transaction did (section 7)."""

import pytest

from latchwork.settings import Settings
from latchwork.store.database import Database
from tests.store.observer_load import Load

TRANSITIONS = 2_000


@pytest.mark.parametrize("seed", [1])
def test_every_committed_row_is_delivered_in_order_and_nothing_stalls(
    database_url: str, seed: int
) -> None:
    """The whole of it, with 20,000 rows, is ``python -m tests.store.observer_load``."""
    database = Database(database_url, Settings(pool_size=20))
    # SQLite has one writer at a time: an open transaction there keeps all others waiting.
    hold, long_hold = (0.001, 0.0) if database.is_sqlite else (0.1, 2.0)
    load = Load(database, TRANSITIONS, hold, long_hold, restarts=2, seed=seed)
    load.run()
    database.dispose()
    assert len(load.logged) >= TRANSITIONS
    assert load.missing() == set()
    assert load.out_of_order() == []
    assert load.rolled_back > 0
    assert load.met_while_held > 50 or database.is_sqlite
