"""Delivering to one observer: read the log, keep what is for it, call it, settle (section 7)."""

import logging
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from latchwork.decisions.observers import next_try
from latchwork.log_tail import LogBatch, Place
from latchwork.maintenance.observer_calls import Call, Calls
from latchwork.maintenance.observer_lease import ObserverLease
from latchwork.observers import ObserverContext, RegisteredObserver
from latchwork.store import deliveries, observer_cursors
from latchwork.store.database import Database
from latchwork.store.deliveries import Delivery, Failure, Settlement, Started
from latchwork.store.log_writing import KEPT_ROWS_PER_JOB
from latchwork.store.transition_log import Reading, read_batch
from latchwork.values import cut_text, storable_text

if TYPE_CHECKING:
    from sqlalchemy import Connection

logger = logging.getLogger(__name__)

LOG_ROWS = 500
CALLS_TOGETHER = 100
POLL_SECONDS = 0.1
WAIT_FOR_LEASE_SECONDS = 1.0
MAX_ERROR_BYTES = 512


class ObserverDelivery:
    """Serves one observer while this node holds its lease: one round after the other."""

    def __init__(
        self,
        observer: RegisteredObserver,
        lease: ObserverLease,
        database: Database,
        stopping: threading.Event,
        *,
        call_seconds: float,
    ) -> None:
        self.name = f"observer-{lease.name}"
        self.pause_seconds = POLL_SECONDS
        self._scope = observer.scope
        self._on_transition = observer.on_transition
        self._lease = lease
        self._database = database
        self._stopping = stopping
        self._calls = Calls(lease.name, stopping, limit_seconds=call_seconds)
        self._reading = Reading(0)
        self._unsettled: Settlement | None = None
        self._more_due = False
        self._untrimmed: set[UUID] = set()

    def run_once(self) -> bool:
        """One round; returns whether there is more to do."""
        if not self._lease.held and not self._take_lease():
            self.pause_seconds = WAIT_FOR_LEASE_SECONDS
            return False
        self.pause_seconds = POLL_SECONDS
        if not self._settle():
            return True
        more_logged, due = self._read_log()
        self._trim()
        if not due or self._calls.blocked or not self._lease.held:
            return more_logged
        if self._stopping.is_set():
            return False
        return self._deliver() or more_logged

    def close(self) -> None:
        """Let its thread end."""
        self._calls.close()

    def _take_lease(self) -> bool:
        token = self._lease.take()
        if token is None:
            return False
        self._reading = Reading.at(Place.parse(token))
        self._unsettled, self._more_due = None, False
        return True

    def _read_log(self) -> tuple[bool, bool]:
        """Take the next rows from the log, unless calls are waiting already.

        Returns whether there is more in the log, and whether a delivery is due.
        """
        if self._more_due:
            return True, True
        batch, due = self._database.read(self._look)
        wanted = [row for row in batch if self._scope.covers(row)]
        if batch.reading.place != self._reading.place and not self._fenced(
            observer_cursors.advance, wanted, batch.reading.place
        ):
            return False, False
        self._reading = batch.reading
        self._untrimmed |= {row.job_id for row in batch if row.ordinal >= KEPT_ROWS_PER_JOB}
        return len(batch) == LOG_ROWS, due or bool(wanted)

    def _look(self, connection: "Connection") -> tuple[LogBatch, bool]:
        now = self._database.clock.now()
        batch = read_batch(connection, self._reading, limit=LOG_ROWS)
        return batch, deliveries.any_due(connection, self._lease.name, now=now)

    def _trim(self) -> None:
        """Drop rows beyond the cap that were kept for this observer until now."""
        if self._untrimmed:
            self._untrimmed = self._database.write(
                observer_cursors.trim_logs, self._untrimmed, now=self._database.clock.now()
            )

    def _deliver(self) -> bool:
        started = self._database.write(self._start)
        if started is None:
            self._lease.lose()
            return False
        self._more_due = started.more
        self._unsettled = self._call_each(started.deliveries)
        return self._settle() and bool(started.deliveries)

    def _start(self, connection: "Connection") -> Started | None:
        return deliveries.start(
            connection, self._lease.name, self._lease.owner,
            limit=CALLS_TOGETHER, now=self._database.clock.now(),
        )  # fmt: skip

    def _call_each(self, started: Sequence[Delivery]) -> Settlement:
        """Call for each; what waits behind a failure of its job is left for later."""
        calls = [Call(one.job_sequence, partial(self._call, one)) for one in started]
        results = self._calls.make(calls, lambda: self._lease.held).results
        errors = [error for error in results.values() if error is not None]
        if errors:
            logger.warning("%s failed and is tried again", self.name, exc_info=errors[0])
        ended = [(one, results[place]) for place, one in enumerate(started) if place in results]
        return Settlement(
            delivered=tuple(one for one, error in ended if error is None),
            failed=tuple(self._failure(one, error) for one, error in ended if error is not None),
            not_called=tuple(one for place, one in enumerate(started) if place not in results),
        )

    def _call(self, delivery: Delivery) -> Awaitable[None] | None:
        row, name = delivery.row, self._lease.name
        key = f"{name}:{row.job_id}:{row.ordinal}"
        return self._on_transition(row, ObserverContext(name, delivery.starts + 1, key))

    def _failure(self, delivery: Delivery, error: BaseException) -> Failure:
        failures = delivery.failures + 1
        now = self._database.clock.now()
        again = next_try(failures, now, chance=random.random())  # noqa: S311
        kind = type(error).__name__
        if not self._database.settings.disable_failure_detail:
            kind += f": {_said(error)}"
        return Failure(delivery, cut_text(storable_text(kind), MAX_ERROR_BYTES), again)

    def _settle(self) -> bool:
        """Write what became of the last calls; again if the answer was lost."""
        if self._unsettled is None:
            return True
        settlement = self._unsettled
        settled = self._fenced(deliveries.settle, settlement)
        self._unsettled = None
        return settled

    def _fenced(self, write: Callable[..., bool], *arguments: object) -> bool:
        now = self._database.clock.now()
        done = self._database.write(write, self._lease.name, self._lease.owner, *arguments, now=now)
        if not done:
            self._lease.lose()
        return done


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - an error that cannot be written is described
        return f"its text cannot be written: {type(broken).__name__}"
