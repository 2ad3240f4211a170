"""The sweep of lapsed leases: any node, all queues, also jobs of types it does not know."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from latchwork.decisions.retries import next_due
from latchwork.store import expiry
from latchwork.store.database import Database
from latchwork.store.expiry import LapsedJob, LapseVerdict

if TYPE_CHECKING:
    from sqlalchemy import Connection

BATCH = 500


class ExpirySweeper:
    """Returns jobs whose worker is gone to the queue, or dead-letters them at the ceiling."""

    name = "expiry-sweeper"

    def __init__(self, database: Database, pause_seconds: float) -> None:
        self._database = database
        self.pause_seconds = pause_seconds

    def run_once(self) -> bool:
        """Sweep one batch, longest lapsed first; returns whether there may be more."""
        lapsed = self._database.read(self._read)
        if lapsed:
            self._database.write(self._expire, lapsed)
        return len(lapsed) == BATCH

    def _read(self, connection: "Connection") -> list[LapsedJob]:
        return expiry.read_lapsed(connection, now=self._database.clock.now(), limit=BATCH)

    def _expire(self, connection: "Connection", lapsed: Sequence[LapsedJob]) -> int:
        now = self._database.clock.now()
        verdicts = [
            LapseVerdict(job, next_due(job.retry, job.attempt, now, chance=random.random()))  # noqa: S311
            for job in lapsed
        ]
        keep_text = not self._database.settings.disable_failure_detail
        return expiry.expire(connection, verdicts, now=now, keep_text=keep_text)
