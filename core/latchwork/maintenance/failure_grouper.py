"""The sweep that sorts failed jobs into groups of one cause, for the page of failures."""

from latchwork.store import failure_grouping
from latchwork.store.database import Database

BATCH = 500
FORGET_SECONDS = 600.0


class FailureGrouper:
    """Sorts what has failed in the last seconds; now and then forgets what is long over."""

    name = "failure-grouper"

    def __init__(self, database: Database, pause_seconds: float = 2.0) -> None:
        self._database = database
        self.pause_seconds = pause_seconds
        self._forget_at = 0.0

    def run_once(self) -> bool:
        """Sort one batch; returns whether there may be more."""
        self._forget_old()
        if not self._database.read(failure_grouping.any_ungrouped):
            return False
        return self._database.write(failure_grouping.group_failures, limit=BATCH) == BATCH

    def _forget_old(self) -> None:
        clock = self._database.clock
        if clock.monotonic() < self._forget_at:
            return
        self._forget_at = clock.monotonic() + FORGET_SECONDS
        self._database.write(failure_grouping.forget_old, now=self._database.now())
