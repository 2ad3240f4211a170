"""The services beside a node, run when there is something for them to do."""

import os
import secrets
import socket
import threading
from datetime import datetime, timedelta

from latchwork.application import Latchwork
from latchwork.decisions.observers import CALL_SECONDS, LEASE_SECONDS
from latchwork.maintenance.bulk_runner import BulkRunner
from latchwork.maintenance.counter_folder import CounterFolder
from latchwork.maintenance.expiry_sweeper import ExpirySweeper
from latchwork.maintenance.failure_grouper import FailureGrouper
from latchwork.maintenance.observer_delivery import ObserverDelivery
from latchwork.maintenance.observer_lease import ObserverLease
from latchwork.maintenance.schedule_minter import ScheduleMinter
from latchwork.maintenance.service import Service
from latchwork.store.agenda import Agenda, read_agenda


class Upkeep:
    """Sweeps, mints, delivers and works off operations, in the test's own thread.

    An observer's function is called in a thread of its own, which is waited for.
    """

    def __init__(self, app: Latchwork) -> None:
        database = app.database
        self._database = database
        self._sweeper = ExpirySweeper(database, 1.0)
        self._minter = ScheduleMinter(database)
        self._bulk_runner = BulkRunner(database)
        self._seldom = (FailureGrouper(database), CounterFolder(database))
        owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._leases = [
            ObserverLease(one.scope.name, owner, database, LEASE_SECONDS) for one in app.observers
        ]
        self._renew_at = database.now()
        self._deliveries = [
            ObserverDelivery(one, lease, database, threading.Event(), call_seconds=CALL_SECONDS)
            for one, lease in zip(app.observers, self._leases, strict=True)
        ]

    def tend(self) -> Agenda:
        """Do what is due now; returns what is to come."""
        now = self._database.now()
        agenda = self._database.read(read_agenda)
        services: list[Service] = []
        if agenda.lapse_at is not None and agenda.lapse_at <= now:
            services.append(self._sweeper)
        if agenda.tick_at is not None and agenda.tick_at <= now:
            services.append(self._minter)
        if agenda.operations:
            services.append(self._bulk_runner)
        if self._deliveries:
            self._renew_leases(now)
        services.extend(self._deliveries)
        for service in services:
            _exhaust(service)
        return self._database.read(read_agenda) if services else agenda

    def _renew_leases(self, now: datetime) -> None:
        """Renew what is getting old: a renewal is a write, which would be looked into again."""
        if now >= self._renew_at:
            self._renew_at = now + timedelta(seconds=LEASE_SECONDS / 3)
            for lease in self._leases:
                lease.renew()

    def tidy(self) -> None:
        """Do what a monitor likes to be done: failures sorted, counts folded."""
        for service in self._seldom:
            _exhaust(service)

    def close(self) -> None:
        """Let the observers' threads end."""
        for delivery in self._deliveries:
            delivery.close()


def _exhaust(service: Service) -> None:
    while service.run_once():
        pass
