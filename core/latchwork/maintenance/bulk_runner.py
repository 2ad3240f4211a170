"""The service that works off operations on many jobs, on whatever process is there."""

import os
import secrets
import socket
from uuid import UUID

from latchwork.errors import StoreBusy
from latchwork.store import bulk_work
from latchwork.store.bulk_work import Member
from latchwork.store.database import Database

FORGET_SECONDS = 600.0


class BulkRunner:
    """Takes the oldest operation that nobody is at, step by step, until its members are tried."""

    name = "bulk-runner"

    def __init__(self, database: Database, pause_seconds: float = 1.0) -> None:
        self._database = database
        self.pause_seconds = pause_seconds
        self._worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._forget_at = 0.0

    def run_once(self) -> bool:
        """Do one step; returns whether there may be more."""
        database = self._database
        if not database.read(bulk_work.anything_to_do, self._worker, now=database.now()):
            return self._forget_old()
        step = database.write(bulk_work.work_step, self._worker, now=database.now())
        if step is None:
            return False
        for member in step.busy:
            self._try_alone(step.operation_id, member)
        return True

    def _try_alone(self, operation_id: UUID, member: Member) -> None:
        write, now = self._database.write, self._database.now
        try:
            write(bulk_work.try_member, operation_id, member, self._worker, now=now())
        except StoreBusy:
            write(bulk_work.pass_over, operation_id, member, self._worker, now=now())

    def _forget_old(self) -> bool:
        clock = self._database.clock
        if clock.monotonic() < self._forget_at:
            return False
        if self._database.write(bulk_work.forget_old, now=self._database.now()):
            return True
        self._forget_at = clock.monotonic() + FORGET_SECONDS
        return False
