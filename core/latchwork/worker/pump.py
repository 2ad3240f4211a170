"""The asyncio pump: carries out the node's commands and tells it what came of them."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar, assert_never

from latchwork.decisions.leases import Hold
from latchwork.decisions.node import Node, NodePlan
from latchwork.decisions.node_messages import (
    CancelAsked,
    Claim,
    Claimed,
    ClaimFailed,
    Command,
    Ended,
    Event,
    FireTokens,
    Forget,
    Hinted,
    LeasesLost,
    Release,
    Reported,
    ReportFailed,
    ReportOutcomes,
    Run,
    Stop,
    StopAsked,
    WakeAt,
    Woke,
)
from latchwork.errors import StoreBusy, StoreUnavailable
from latchwork.store import claiming, heartbeats, outcomes
from latchwork.store.claiming import ClaimedBatch, ClaimedJob
from latchwork.store.database import Database
from latchwork.store.outcomes import Answer, AnswerStatus, Report
from latchwork.worker.execution import Attempt, Execution
from latchwork.worker.lease_keeper import LeaseKeeper
from latchwork.worker.signals import WorkerSignals
from latchwork.worker.threads import DaemonThreads

if TYPE_CHECKING:
    from sqlalchemy import Connection

logger = logging.getLogger(__name__)

T = TypeVar("T")

STORE_THREADS = 4
"""Claims, outcomes and releases wait for the database side by side."""


class Pump:
    """Drives one node on the running event loop until it has stopped."""

    def __init__(
        self,
        plan: NodePlan,
        database: Database,
        worker_id: str,
        *,
        lease_seconds: float,
        signals: WorkerSignals,
    ) -> None:
        self._node = Node(plan)
        self._database = database
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds
        self._signals = signals
        self._loop = asyncio.get_running_loop()
        self._stopped: asyncio.Future[list[Attempt]] = self._loop.create_future()
        self._threads = DaemonThreads("latchwork-store", STORE_THREADS)
        self._attempts: dict[Hold, Attempt] = {}
        self._claimed_jobs: dict[Hold, ClaimedJob] = {}
        self._ended: list[Attempt] = []
        self._alarm: asyncio.Handle | None = None
        self._alarm_at = 0.0
        self._store_faulty = False
        self.draining = False
        """Set, from any thread, once the node was asked to stop: nothing is claimed from then on,
        even before the loop hears of it."""
        self._execution: Execution
        self._keeper: LeaseKeeper

    async def run(self, execution: Execution, keeper: LeaseKeeper) -> list[Attempt]:
        """Work until the node has stopped; returns the attempts whose code still runs."""
        self._execution = execution
        self._keeper = keeper
        self._step(Woke(self._loop.time()))
        try:
            return await self._stopped
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
            self._threads.close()

    # What others tell the pump.

    def stop(self) -> None:
        """Drain and stop; told again, do not wait for running jobs. On the loop's thread."""
        self.draining = self._keeper.draining = True
        self._step(StopAsked(self._loop.time()))

    def ended(self, attempt: Attempt) -> None:
        """The code of an attempt has ended. On the loop's thread."""
        self._ended.append(attempt)
        if len(self._ended) == 1:
            # Whatever else ends in this turn of the loop goes the same way.
            self._loop.call_soon(self._tell_ended)

    def hinted(self, queue: str | None) -> None:
        """Work may be due. From any thread."""
        self._from_thread(lambda: self._step(Hinted(self._loop.time(), queue)))

    def leases_lost(self, holds: Sequence[Hold]) -> None:
        """The heartbeat lost these. From any thread."""
        self._from_thread(lambda: self._tell_lost(holds))

    def cancel_asked(self, holds: Sequence[Hold]) -> None:
        """The heartbeat brought a cancel for these. From any thread."""
        self._from_thread(lambda: self._step(CancelAsked(self._loop.time(), holds)))

    # The node's commands.

    def _step(self, event: Event) -> None:
        if self._stopped.done():
            return
        for command in self._node.step(event):
            self._carry_out(command)

    def _carry_out(self, command: Command) -> None:  # noqa: C901 - one case per command
        match command:
            case Claim():
                self._in_store(partial(self._claim, command), partial(self._claimed, command))
            case Run():
                for hold in command.holds:
                    job = self._claimed_jobs.pop(hold)
                    self._attempts[hold] = self._execution.start(job, hold)
            case FireTokens():
                for hold in command.holds:
                    self._execution.fire(self._attempts[hold], command.reason)
            case ReportOutcomes():
                self._report(command.holds)
            case Forget():
                self._forget(command.holds)
            case Release():
                self._forget(command.holds)
                self._in_store(partial(self._release, command.holds), self._released)
            case WakeAt():
                self._set_alarm(command.at)
            case Stop():
                self._stopped.set_result([self._attempts[hold] for hold in command.running])
            case _ as unreachable:
                assert_never(unreachable)

    def _set_alarm(self, at: float) -> None:
        # An alarm that rings too early does no harm: the node then asks for the next.
        if self._alarm is None or self._alarm_at > at:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = self._loop.call_at(at, self._wake)
            # Kept here: for a time that has passed, uvloop's handle does not know it.
            self._alarm_at = at

    def _wake(self) -> None:
        self._alarm = None
        self._step(Woke(self._loop.time()))

    def _tell_ended(self) -> None:
        ended, self._ended = self._ended, []
        outcomes_of = [attempt.hold for attempt in ended if attempt.report is not None]
        cut_off = [attempt.hold for attempt in ended if attempt.report is None]
        self._step(Ended(self._loop.time(), outcomes_of, cut_off))

    def _tell_lost(self, holds: Sequence[Hold]) -> None:
        attempts = [self._attempts[hold] for hold in holds if hold in self._attempts]
        if attempts:  # a renewal that crossed its job's outcome is no news
            logger.warning("%d leases were lost; their handlers are told to stop", len(attempts))
        self._step(LeasesLost(self._loop.time(), holds))
        self._signals.lost.tell(attempt.job.id for attempt in attempts)

    def _forget(self, holds: Sequence[Hold]) -> None:
        self._keeper.forget(holds)
        for hold in holds:
            self._attempts.pop(hold, None)
            self._claimed_jobs.pop(hold, None)

    # Claims: asked in a store thread, answered on the loop.

    def _claim(self, command: Claim) -> ClaimedBatch:
        batch = self._database.write(self._ask_claim, command)
        if batch.jobs:
            # Renewed from now on, however long the loop may be busy with something else.
            holds = [job.hold for job in batch.jobs]
            self._keeper.hold(holds, batch.jobs[0].lease_expires_at)
        return batch

    def _ask_claim(self, connection: "Connection", command: Claim) -> ClaimedBatch:
        if self.draining:
            return ClaimedBatch([], None)
        return claiming.claim(
            connection,
            worker_id=self._worker_id,
            queue=command.queue,
            limit=command.limit,
            lease_seconds=self._lease_seconds,
            now=self._database.clock.now(),
            allow_suspect=command.allow_suspect,
        )

    def _loop_time(self, moment: datetime | None) -> float | None:
        """A time of the store's clock on the loop's."""
        if moment is None:
            return None
        return self._loop.time() + (moment - self._database.clock.now()).total_seconds()

    def _claimed(self, command: Claim, answer: ClaimedBatch | Exception) -> None:
        at = self._loop.time()
        if isinstance(answer, Exception):
            self._note_fault("claim jobs", answer)
            self._step(ClaimFailed(at, command.queue))
            return
        self._store_faulty = False
        jobs = {job.hold: job for job in answer.jobs}
        suspects = [hold for hold, job in jobs.items() if job.suspect]
        self._claimed_jobs.update(jobs)
        next_due_at = self._loop_time(answer.next_due_at)
        self._step(Claimed(at, command.queue, tuple(jobs), suspects, next_due_at))
        if jobs:
            self._signals.claimed.tell(job.id for job in answer.jobs)

    # Outcomes.

    def _report(self, holds: Sequence[Hold]) -> None:
        attempts = [self._attempts[hold] for hold in holds]
        reports = [attempt.report for attempt in attempts if attempt.report is not None]
        self._in_store(partial(self._ask_report, reports), partial(self._reported, attempts))

    def _ask_report(self, reports: Sequence[Report]) -> list[Answer]:
        return self._database.write(self._write_report, reports)

    def _write_report(self, connection: "Connection", reports: Sequence[Report]) -> list[Answer]:
        now = self._database.clock.now()
        return outcomes.report_outcomes(connection, self._worker_id, reports, now=now)

    def _reported(self, attempts: Sequence[Attempt], answers: list[Answer] | Exception) -> None:
        at = self._loop.time()
        if isinstance(answers, Exception):
            self._note_fault("report outcomes", answers)
            refused = not isinstance(answers, (StoreBusy, StoreUnavailable))
            self._step(ReportFailed(at, [attempt.hold for attempt in attempts], refused))
            return
        self._store_faulty = False
        settled: list[Attempt] = []
        busy: list[Attempt] = []
        for attempt, answer in zip(attempts, answers, strict=True):
            (busy if answer.status is AnswerStatus.BUSY else settled).append(attempt)
            if answer.status is AnswerStatus.STALE:
                logger.warning("The outcome of job %s came too late", attempt.job.id)
        self._step(Reported(at, [one.hold for one in settled], [one.hold for one in busy]))
        self._signals.finished.tell(attempt.job.id for attempt in settled)

    # Releases.

    def _release(self, holds: Sequence[Hold]) -> None:
        self._database.write(self._write_release, holds)

    def _write_release(self, connection: "Connection", holds: Sequence[Hold]) -> None:
        now = self._database.clock.now()
        heartbeats.release(connection, self._worker_id, holds, now=now)

    def _released(self, answer: Exception | None) -> None:
        if answer is not None:
            self._note_fault("release leases, which now lapse by themselves", answer)

    # Threads.

    def _in_store(self, work: Callable[[], T], then: Callable[[T | Exception], None]) -> None:
        def run() -> None:
            answer: T | Exception
            try:
                answer = work()
            except Exception as error:  # noqa: BLE001 - the node decides what follows
                answer = error
            self._from_thread(partial(then, answer))

        self._threads.submit(run)

    def _from_thread(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to hear it
            self._loop.call_soon_threadsafe(call)

    def _note_fault(self, what: str, error: Exception) -> None:
        if not isinstance(error, (StoreBusy, StoreUnavailable)):
            logger.error("Could not %s", what, exc_info=error)
        elif not self._store_faulty:
            logger.warning("Could not %s; trying again: %s", what, error)
        self._store_faulty = True
