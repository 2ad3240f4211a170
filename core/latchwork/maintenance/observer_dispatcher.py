"""The observers of a node: each served in a thread of its own, so that none holds up another."""

import os
import secrets
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

from latchwork.decisions.observers import CALL_SECONDS, LEASE_SECONDS
from latchwork.errors import StoreError
from latchwork.maintenance.observer_delivery import ObserverDelivery
from latchwork.maintenance.observer_lease import ObserverLease
from latchwork.maintenance.service import Service, ServiceThread
from latchwork.observers import ObserverRegistry
from latchwork.store import observer_cursors
from latchwork.store.database import Database

RENEWALS_PER_LEASE = 3


class ObserverDispatcher:
    """Registers an application's observers and serves those that no other node serves."""

    def __init__(
        self,
        database: Database,
        registry: ObserverRegistry,
        *,
        lease_seconds: float = LEASE_SECONDS,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        self._caller_database = database
        self._registry = registry
        self._lease_seconds = lease_seconds
        self._call_seconds = call_seconds
        self._stopping = threading.Event()
        self._leases: list[ObserverLease] = []
        self._deliveries: list[ObserverDelivery] = []
        self._threads: list[ServiceThread] = []
        self._database = database

    def register(self) -> None:
        """Make the observers known to the database, before the node works.

        Raises HistoryOff when nothing is logged.
        """
        now = self._caller_database.now()
        for observer in self._registry:
            self._caller_database.write(observer_cursors.register, observer.scope, now=now)

    def start(self) -> None:
        """Begin to serve."""
        if not len(self._registry):
            return
        # A pool of its own: a node whose connections are all busy still notifies.
        self._database = self._caller_database.apart()
        owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        for observer in self._registry:
            lease = ObserverLease(observer.scope.name, owner, self._database, self._lease_seconds)
            delivery = ObserverDelivery(
                observer, lease, self._database, self._stopping, call_seconds=self._call_seconds
            )
            self._leases.append(lease)
            self._deliveries.append(delivery)
        renewals = LeaseRenewals(self._leases, self._lease_seconds / RENEWALS_PER_LEASE)
        services: list[Service] = [renewals, *self._deliveries]
        self._threads = [ServiceThread(one) for one in services]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End after the calls under way, which are given a moment."""
        self._stopping.set()
        for thread in self._threads:
            thread.stop()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the end, no longer than this, and give the leases back."""
        for thread in self._threads:
            thread.join(timeout_seconds)
        for delivery, lease in zip(self._deliveries, self._leases, strict=True):
            delivery.close()
            if lease.held:
                with suppress(StoreError):
                    lease.release()
        if self._database is not self._caller_database:
            self._database.dispose()


class LeaseRenewals:
    """Keeps the leases of a node's observers, also while a call takes long."""

    name = "observer-leases"

    def __init__(self, leases: Sequence[ObserverLease], pause_seconds: float) -> None:
        self._leases = leases
        self.pause_seconds = pause_seconds

    def run_once(self) -> bool:
        """Renew what is held."""
        for lease in self._leases:
            lease.renew()
        return False
