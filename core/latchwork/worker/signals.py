"""Moments in a worker's life that a test or a program can wait for, instead of sleeping."""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable
from uuid import UUID

KEPT_MOMENTS = 10_000


class Signal:
    """One kind of moment, told per job id; the latest are kept for those who ask afterwards."""

    def __init__(self) -> None:
        self._told: deque[UUID] = deque(maxlen=KEPT_MOMENTS)
        self._changed = threading.Condition()
        self._waiting = 0

    def tell(self, job_ids: Iterable[UUID]) -> None:
        """These jobs have come to this moment. For the worker."""
        with self._changed:
            self._told.extend(job_ids)
            if self._waiting:
                self._changed.notify_all()

    def count(self, job_id: UUID) -> int:
        """How often it was told of this job."""
        with self._changed:
            return self._told.count(job_id)

    def wait_blocking(self, job_id: UUID, *, timeout_seconds: float, times: int = 1) -> None:
        """Wait until it was told ``times`` times of this job; TimeoutError if it was not."""
        with self._changed:
            self._waiting += 1
            try:
                met = self._changed.wait_for(
                    lambda: self._told.count(job_id) >= times, timeout_seconds
                )
            finally:
                self._waiting -= 1
        if not met:
            raise TimeoutError(f"no signal for job {job_id} within {timeout_seconds} s")

    async def wait_for(self, job_id: UUID, *, timeout_seconds: float, times: int = 1) -> None:
        """``wait_blocking`` for ``async`` code: the wait happens in a thread."""
        await asyncio.to_thread(
            self.wait_blocking, job_id, timeout_seconds=timeout_seconds, times=times
        )


class WorkerSignals:
    """What a worker tells: jobs claimed, outcomes settled with the store, leases lost."""

    def __init__(self) -> None:
        self.claimed = Signal()
        self.finished = Signal()
        self.lost = Signal()
