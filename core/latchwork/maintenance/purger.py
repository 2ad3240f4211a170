"""The purge: ended jobs whose time is over, old audit rows, nodes that are gone."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from uuid import UUID

from latchwork.decisions.retention import Retention
from latchwork.settings import Settings
from latchwork.store import purging
from latchwork.store.database import Database
from latchwork.store.purging import BATCH, Group, Place


class Purger:
    """Goes over the ended jobs, one batch a time, and rests between two passes.

    A job goes as ``Settings`` says, when no child of it is stored any more (contract section 5).
    """

    name = "purger"

    def __init__(self, database: Database, pause_seconds: float = 60.0) -> None:
        self._database = database
        self._retention = retention_of(database.settings)
        self._place: Place | None = None
        self._seen: set[UUID] = set()
        self.pause_seconds = pause_seconds

    def run_once(self) -> bool:
        """Look at the next batch of ended jobs; returns whether the pass goes on."""
        now = self._database.now()
        found = self._database.read(
            purging.find, self._retention, now=now, place=self._place, seen=self._seen
        )
        for batch in _batches(found.groups):
            self._database.write(purging.purge, batch, self._retention, now=now)
        self._seen |= found.workflows
        self._place = found.place
        if found.place is None:
            self._seen.clear()
            self._database.write(purging.purge_records, now=now)
        return found.place is not None


def retention_of(settings: Settings) -> Retention:
    """The retention windows that the settings name."""
    return Retention(
        done=timedelta(hours=settings.retention_done_hours),
        failed=timedelta(days=settings.retention_failed_days),
    )


def _batches(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Groups in batches of about ``BATCH`` jobs; a workflow is never divided."""
    batch: list[Group] = []
    size = 0
    for group in groups:
        if batch and size + len(group.sequences) > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(group)
        size += len(group.sequences)
    if batch:
        yield batch
