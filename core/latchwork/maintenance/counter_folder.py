"""Folding the counter ledger, so that exact counts stay sums over a few hundred rows."""

from typing import TYPE_CHECKING

from latchwork.store import counter_folding
from latchwork.store.database import Database

if TYPE_CHECKING:
    from sqlalchemy import Connection


class CounterFolder:
    """Folds what the batches of the last seconds appended."""

    name = "counter-folder"

    def __init__(self, database: Database, pause_seconds: float = 3.0) -> None:
        self._database = database
        self.pause_seconds = pause_seconds

    def run_once(self) -> bool:
        """Fold one batch; returns whether there may be more."""
        return self._database.write(self._fold) == counter_folding.MAX_ENTRIES

    def _fold(self, connection: "Connection") -> int:
        return counter_folding.fold(connection, now=self._database.clock.now())
