"""A worker node: what ``app.worker(...)`` returns."""

import asyncio
import gc
import logging
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol

from latchwork.decisions.leases import Hold
from latchwork.decisions.node import (
    FLUSH_SECONDS,
    INTERRUPT_SECONDS,
    NodePlan,
    back_off_seconds,
)
from latchwork.errors import StoreBusy, StoreError, StoreUnavailable
from latchwork.store import heartbeats
from latchwork.store.database import Database
from latchwork.store.heartbeats import NodeRecord
from latchwork.worker.execution import Attempt, AttemptScope, Execution, Handler
from latchwork.worker.lease_keeper import LeaseKeeper
from latchwork.worker.pump import Pump
from latchwork.worker.shutdown import call_on, run_loop, stop_on_signals
from latchwork.worker.signals import WorkerSignals
from latchwork.worker.threads import in_daemon_thread
from latchwork.worker.wake_up import WakeUp

if TYPE_CHECKING:
    from sqlalchemy import Connection

logger = logging.getLogger(__name__)

FAREWELL_SECONDS = 2.0
"""How long a node that has stopped tries to say so; its leases lapse anyway."""


class Companion(Protocol):
    """Something that runs beside the node, such as the sweep of lapsed leases."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End soon."""

    def join(self, timeout_seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a node works; ``Latchwork.worker`` explains and checks each."""

    queues: tuple[str, ...]
    weights: Mapping[str, int] | None
    slots: int
    lease_seconds: float
    heartbeat_seconds: float
    poll_seconds: float
    grace_seconds: float


class Worker:
    """One worker node. ``signals`` tells a test or a program what has happened so far.

    ``introduce`` makes known to the database what runs beside the node, before it works.

    ``worker_id`` is new with every start, so that a lease of an earlier life is never taken for
    one of this.
    """

    def __init__(
        self,
        database: Database,
        job_types: Mapping[str, Handler],
        options: WorkerOptions,
        *,
        attempt_scope: AttemptScope | None,
        companions: Sequence[Companion],
        introduce: Callable[[], None],
    ) -> None:
        self.options = options
        self.signals = WorkerSignals()
        self.worker_id = ""
        self._database = database
        self._job_types = job_types
        self._attempt_scope = attempt_scope
        self._companions = companions
        self._introduce_others = introduce
        self._stops_asked = 0
        self._stops_told = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pump: Pump | None = None
        self._introduction: asyncio.Future[None] | None = None

    @property
    def patience_seconds(self) -> float:
        """How long after it was told to stop it has ended at the latest."""
        return self.options.grace_seconds + INTERRUPT_SECONDS + FLUSH_SECONDS + FAREWELL_SECONDS

    def run(self) -> None:
        """Work until SIGTERM or SIGINT, then drain (contract section 4, Shutdown).

        Returns when everything that could be reported is; a thread that still runs does not keep
        the process alive. Raises SchemaOutdated when the database belongs to a newer version.
        """
        # What is loaded by now stays: the collector need not walk through it again and again.
        gc.collect()
        gc.freeze()
        with stop_on_signals(self.stop, patience_seconds=self.patience_seconds):
            leftover = run_loop(self._work())
            # The loop is gone, so the async handlers among these run no more; threads still may.
            self._release([attempt.hold for attempt in leftover if attempt.task is not None])

    async def serve(self) -> None:
        """Work on the running event loop until ``stop`` is called; signals are the caller's."""
        await self._work()

    def stop(self) -> None:
        """Drain and stop. From any thread or a signal handler, also before the start.

        Asked twice, the node does not wait for running jobs any longer. A worker that has stopped
        is not started again: make a new one.
        """
        self._stops_asked += 1
        pump = self._pump
        if pump is not None:
            pump.draining = True
        if self._loop is not None:
            call_on(self._loop, self._tell_stops)

    def _tell_stops(self) -> None:
        if self._introduction is not None:
            self._introduction.cancel()
        while self._pump is not None and self._stops_told < self._stops_asked:
            self._stops_told += 1
            self._pump.stop()

    async def _work(self) -> list[Attempt]:
        """Start, work, end; returns the attempts whose code has not ended."""
        self.worker_id = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._loop = asyncio.get_running_loop()
        if not await self._introduced():
            return []
        options = self.options
        plan = NodePlan(
            options.queues, options.slots, options.poll_seconds, options.grace_seconds,
            options.weights,
        )  # fmt: skip
        pump = Pump(
            plan, self._database, self.worker_id,
            lease_seconds=options.lease_seconds, signals=self.signals,
        )  # fmt: skip
        execution = Execution(
            self._job_types, self._database,
            slots=options.slots, attempt_scope=self._attempt_scope, on_end=pump.ended,
        )  # fmt: skip
        keeper = LeaseKeeper(
            self._database, self.worker_id,
            lease_seconds=options.lease_seconds, heartbeat_seconds=options.heartbeat_seconds,
            on_lost=pump.leases_lost, on_cancel=pump.cancel_asked,
        )  # fmt: skip
        wake_up = WakeUp(self._database, options.queues, pump.hinted)
        companions: list[Companion] = [keeper, wake_up, *self._companions]
        for companion in companions:
            companion.start()
        self._pump = pump
        self._loop.call_soon(self._tell_stops)
        try:
            return await pump.run(execution, keeper)
        finally:
            self._pump = None
            for companion in companions:
                companion.stop()
            execution.close()
            await self._part_from(companions)

    async def _introduced(self) -> bool:
        """Bring the schema up to date and register the node, however long the database is away.

        Returns False when the node was asked to stop before that was done.
        """
        faults = 0
        while not self._stops_asked:
            self._introduction = asyncio.ensure_future(in_daemon_thread(self._introduce))
            try:
                await self._introduction
            except (StoreBusy, StoreUnavailable) as error:
                faults += 1
                logger.warning("The database does not answer yet: %s", error)
                self._introduction = asyncio.ensure_future(
                    asyncio.sleep(back_off_seconds(faults), None)
                )
                with suppress(asyncio.CancelledError):
                    await self._introduction
            except asyncio.CancelledError:
                if not self._stops_asked:
                    raise
            else:
                self._introduction = None
                return True
        return False

    def _introduce(self) -> None:
        self._database.prepare(upgrade=True)
        options = self.options
        record = NodeRecord(
            worker_id=self.worker_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version("latchwork"),
            started_at=self._database.clock.now(),
            heartbeat_seconds=options.heartbeat_seconds,
            slots=options.slots,
            queues=options.queues,
            wire_names=tuple(sorted(self._job_types)),
        )
        self._database.write(heartbeats.register_node, record)
        self._introduce_others()

    async def _part_from(self, companions: Sequence[Companion]) -> None:
        """Say that the node has stopped and wait for its threads, all in a moment or not at all."""
        with suppress(TimeoutError):
            await asyncio.wait_for(
                in_daemon_thread(partial(self._end_threads, companions)), FAREWELL_SECONDS
            )

    def _end_threads(self, companions: Sequence[Companion]) -> None:
        with suppress(StoreError):
            self._database.write(self._write_farewell)
        for companion in companions:
            companion.join(FAREWELL_SECONDS)

    def _write_farewell(self, connection: "Connection") -> None:
        heartbeats.node_stopped(connection, self.worker_id, now=self._database.clock.now())

    def _release(self, holds: Sequence[Hold]) -> None:
        if holds:
            with suppress(StoreError):
                self._database.write(self._write_release, holds)

    def _write_release(self, connection: "Connection", holds: Sequence[Hold]) -> None:
        now = self._database.clock.now()
        heartbeats.release(connection, self.worker_id, holds, now=now)
