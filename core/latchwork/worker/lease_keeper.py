"""Heartbeats, in a thread of their own: a handler that blocks the loop loses nobody's lease."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from latchwork.decisions.leases import Hold
from latchwork.decisions.node import MAX_BATCH
from latchwork.decisions.renewals import RETRY_SECONDS, Renewals
from latchwork.errors import StoreBusy, StoreUnavailable
from latchwork.store import heartbeats
from latchwork.store.database import Database
from latchwork.store.heartbeats import Renewal, RenewalStatus

if TYPE_CHECKING:
    from sqlalchemy import Connection

logger = logging.getLogger(__name__)

Told = Callable[[Sequence[Hold]], None]


class LeaseKeeper:
    """Renews the leases of one node and says that the node is alive.

    ``on_lost`` hears of leases that are gone, ``on_cancel`` of an operator's cancels; both are
    called from the keeper's thread. Nothing that goes wrong in a beat ends the beats.
    """

    def __init__(
        self,
        database: Database,
        worker_id: str,
        *,
        lease_seconds: float,
        heartbeat_seconds: float,
        on_lost: Told,
        on_cancel: Told,
    ) -> None:
        self._database = database.apart()
        self._shares_connections = self._database is database
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds
        self._on_lost = on_lost
        self._on_cancel = on_cancel
        self._clock = database.clock
        self._lock = threading.Lock()
        self._renewals = Renewals(heartbeat_seconds, self._clock.monotonic())
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="latchwork-heartbeat", daemon=True)
        self.draining = False
        """Told with each beat, so that the console can show it."""

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """End after the beat under way."""
        self._stopping.set()

    def join(self, timeout_seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def hold(self, holds: Iterable[Hold], expires_at: datetime) -> None:
        """Renew these from now on; their leases run until ``expires_at``. From any thread."""
        with self._lock:
            self._renewals.hold(holds, expires_at)

    def forget(self, holds: Iterable[Hold]) -> None:
        """Renew these no longer. From any thread."""
        with self._lock:
            self._renewals.forget(holds)

    def _run(self) -> None:
        pause_seconds = 0.0
        while not self._stopping.wait(pause_seconds):
            try:
                self._beat()
                with self._lock:
                    pause_seconds = self._renewals.wait_seconds(
                        self._clock.now(), self._clock.monotonic()
                    )
            except (StoreBusy, StoreUnavailable) as error:
                logger.warning("A heartbeat did not get through; it is tried again: %s", error)
                pause_seconds = RETRY_SECONDS
            except Exception:
                # Also a lack of memory: a node that no longer beats would lose all its leases.
                logger.exception("A heartbeat failed; it is tried again")
                pause_seconds = RETRY_SECONDS
        if not self._shares_connections:
            self._database.dispose()

    def _beat(self) -> None:
        with self._lock:
            beat = self._renewals.beat(self._clock.now(), self._clock.monotonic())
        if beat.lapsed:
            self._on_lost(beat.lapsed)
        for start in range(0, len(beat.due), MAX_BATCH):
            self._renew(beat.due[start : start + MAX_BATCH])
        if beat.regular:
            self._database.write(self._tell_alive)
            if not self._database.is_sqlite:
                self._database.synchronise_clock()

    def _renew(self, holds: Sequence[Hold]) -> None:
        try:
            expires_at, answers = self._database.write(self._ask_renewal, holds)
        except Exception as error:  # noqa: BLE001 - whatever it was, the leases still run
            logger.warning("%d leases could not be renewed: %s", len(holds), error)
            with self._lock:
                self._renewals.not_renewed(holds, self._clock.monotonic())
            return
        by_status: dict[RenewalStatus, list[Hold]] = {status: [] for status in RenewalStatus}
        for answer in answers:
            by_status[answer.status].append(answer.hold)
        lost = by_status[RenewalStatus.LOST]
        with self._lock:
            self._renewals.renewed(by_status[RenewalStatus.RENEWED], expires_at)
            self._renewals.not_renewed(by_status[RenewalStatus.BUSY], self._clock.monotonic())
            self._renewals.forget(lost)
        if lost:
            self._on_lost(lost)
        cancelled = [answer.hold for answer in answers if answer.cancel_requested]
        if cancelled:
            self._on_cancel(cancelled)

    def _ask_renewal(
        self, connection: "Connection", holds: Sequence[Hold]
    ) -> tuple[datetime, list[Renewal]]:
        now = self._clock.now()
        expires_at = now + timedelta(seconds=self._lease_seconds)
        answers = heartbeats.renew(
            connection, self._worker_id, holds, lease_seconds=self._lease_seconds, now=now
        )
        return expires_at, answers

    def _tell_alive(self, connection: "Connection") -> None:
        heartbeats.node_seen(
            connection, self._worker_id, now=self._clock.now(), draining=self.draining
        )
