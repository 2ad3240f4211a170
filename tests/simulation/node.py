"""A virtual node: the real node logic and the real renewals, driven over virtual time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from sqlalchemy import Connection

from latchwork.clock import SystemClock
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
from latchwork.decisions.renewals import RETRY_SECONDS, Renewals
from latchwork.decisions.retries import next_due
from latchwork.decisions.states import CancelReason
from latchwork.errors import StoreUnavailable
from latchwork.store import claiming, expiry, heartbeats, outcomes
from latchwork.store.claiming import ClaimedBatch, ClaimedJob
from latchwork.store.expiry import LapsedJob, LapseVerdict
from latchwork.store.heartbeats import NodeRecord, RenewalStatus
from latchwork.store.moves import Cause
from latchwork.store.outcomes import Answer, AnswerStatus, OutcomeKind, Report
from tests.simulation.dispatcher import VirtualDispatcher
from tests.simulation.plan import QUEUES

if TYPE_CHECKING:
    from tests.simulation.world import World

T = TypeVar("T")

SWEEP_SECONDS = 1.0
POLL_SECONDS = 3.0
GRACE_SECONDS = 3.0
GIVE_UP_SECONDS = 0.5


@dataclass
class Attempt:
    """A handler at work."""

    job: ClaimedJob
    behaviour: str
    ends_at: float
    reasons: list[CancelReason] = field(default_factory=list)
    report: Report | None = None
    ended: bool = False


class VirtualNode:
    """One life of a node, from its start to its crash or its stop."""

    def __init__(self, world: "World", number: int, life: int) -> None:
        self.world = world
        self.number = number
        self.worker_id = f"node-{number}.{life}"
        self.alive = True
        self.frozen_until = 0.0
        self._chance = world.chance(self.worker_id)
        plan = world.plan
        self._skew = timedelta(seconds=self._chance.uniform(-1, 1) * plan.skew_seconds)
        self._clock = SystemClock(self._wall, lambda: world.at)
        self._measure_clock()
        weights = {"red": 3, "green": 2, "blue": 1} if plan.weighted else None
        self._node = Node(NodePlan(QUEUES, plan.slots, POLL_SECONDS, GRACE_SECONDS, weights))
        self._renewals = Renewals(plan.lease_seconds / 3, world.at)
        self._claimed: dict[Hold, ClaimedJob] = {}
        self._attempts: dict[Hold, Attempt] = {}
        self._alarm_at: float | None = None
        record = NodeRecord(
            worker_id=self.worker_id, host="host", pid=number, version="0", started_at=self.now(),
            heartbeat_seconds=plan.lease_seconds / 3, slots=plan.slots, queues=QUEUES,
            wire_names=("known",),
        )  # fmt: skip
        world.database.write(heartbeats.register_node, record)
        self.later(0, lambda: self.step(Woke(world.at)))
        self.later(0, self._beat)
        self.later(self._chance.uniform(0, SWEEP_SECONDS), self._sweep)
        if plan.observed:
            VirtualDispatcher(self)

    def now(self) -> datetime:
        """The time of the store's clock, as this node knows it."""
        return self._clock.now() + self._skew

    def _wall(self) -> datetime:
        return self.world.now() + self.world.wrong_by(self.number)

    def _measure_clock(self) -> None:
        if self.world.plan.own_clocks:
            self._clock.correct(self.world.now)

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something later, unless this life is over by then; a frozen node does it late."""

        def do() -> None:
            if not self.alive:
                return
            if self.world.at < self.frozen_until:
                self.world.later(self.frozen_until - self.world.at, do)
                return
            act()

        self.world.later(seconds, do)

    def stop(self) -> None:
        """SIGTERM."""
        self.step(StopAsked(self.world.at))

    def hint(self, queue: str | None) -> None:
        """A wake-up hint arrives."""
        self.later(self._chance.uniform(0, 0.1), lambda: self.step(Hinted(self.world.at, queue)))

    # The node's commands.

    def step(self, event: Event) -> None:
        """Tell the node what happened and carry out what it orders."""
        for command in self._node.step(event):
            self._carry_out(command)

    def _carry_out(self, command: Command) -> None:  # noqa: C901 - one case per command
        match command:
            case Claim():
                self._claim(command)
            case Run():
                for hold in command.holds:
                    self._start(hold)
            case FireTokens():
                for hold in command.holds:
                    self._fire(self._attempts[hold], command.reason)
            case ReportOutcomes():
                self._report(command.holds)
            case Forget():
                self._forget(command.holds)
            case Release():
                self._release(command.holds)
            case WakeAt():
                self._set_alarm(command.at)
            case Stop():
                self.alive = False
                self.world.note("node stopped")
            case _ as unreachable:
                assert_never(unreachable)

    def _set_alarm(self, at: float) -> None:
        if self._alarm_at is not None and self._alarm_at <= at:
            return
        self._alarm_at = at

        def ring() -> None:
            if self._alarm_at == at:
                self._alarm_at = None
                self.step(Woke(self.world.at))

        self.later(max(0.0, at - self.world.at), ring)

    def in_store(
        self, work: Callable[[Connection], T], then: Callable[[T | Exception], None]
    ) -> None:
        """Do the store's work a moment later, and hear of it another moment later, if at all.

        What is once under way arrives, also when its sender crashes or freezes, or has given it up.
        """
        way = self.world.way_seconds(self._chance)
        gives_up = way > GIVE_UP_SECONDS and self._chance.random() < 0.5

        def do() -> None:
            answer = self.world.ask(work, self._chance)
            if gives_up:
                self.world.note("arrived after it was given up")
            else:
                self.later(self.world.way_seconds(self._chance), lambda: then(answer))

        self.world.later(way, do)
        if gives_up:
            self.later(GIVE_UP_SECONDS, lambda: then(StoreUnavailable("no answer in time")))

    def _forget(self, holds: Sequence[Hold]) -> None:
        self._renewals.forget(holds)
        for hold in holds:
            self._claimed.pop(hold, None)
            self._attempts.pop(hold, None)

    def _release(self, holds: Sequence[Hold]) -> None:
        self._forget(holds)

        def work(connection: Connection) -> None:
            heartbeats.release(connection, self.worker_id, holds, now=self.now())
            self.world.oracles.released(holds)

        self.in_store(work, lambda _: None)

    # Claims and handlers.

    def _claim(self, command: Claim) -> None:
        def work(connection: Connection) -> ClaimedBatch:
            now = self.now()
            batch = claiming.claim(
                connection, worker_id=self.worker_id, queue=command.queue, limit=command.limit,
                lease_seconds=self.world.plan.lease_seconds, now=now,
                allow_suspect=command.allow_suspect,
            )  # fmt: skip
            self.world.oracles.claimed(connection, self.worker_id, command.queue, batch.jobs, now)
            return batch

        def then(answer: ClaimedBatch | Exception) -> None:
            at = self.world.at
            if isinstance(answer, Exception):
                self.step(ClaimFailed(at, command.queue))
                return
            jobs, due = answer
            if jobs:
                self._renewals.hold([job.hold for job in jobs], jobs[0].lease_expires_at)
            self._claimed.update({job.hold: job for job in jobs})
            due_at = None if due is None else at + (due - self.now()).total_seconds()
            suspects = [job.hold for job in jobs if job.suspect]
            self.step(Claimed(at, command.queue, [job.hold for job in jobs], suspects, due_at))

        self.in_store(work, then)

    def _start(self, hold: Hold) -> None:
        job = self._claimed.pop(hold)
        behaviour = self.world.behaviour(job.id)
        chance = self.world.chance(f"{job.payload} {job.claim_number}")
        seconds = {"slow": 5.0, "unroutable": 0.0}.get(behaviour, 1.0) * chance.random()
        attempt = Attempt(job, behaviour, self.world.at + seconds)
        self._attempts[hold] = attempt
        self.world.oracles.began(job)
        self.later(seconds, lambda: self._end(attempt))

    def _fire(self, attempt: Attempt, reason: CancelReason) -> None:
        attempt.reasons.append(reason)
        if attempt.behaviour != "stubborn":
            self.later(0.05, lambda: self._end(attempt, heeds=True))

    def _end(self, attempt: Attempt, *, heeds: bool = False) -> None:
        if attempt.ended:
            return
        attempt.ended = True
        attempt.report = self._outcome(attempt, heeds=heeds)
        hold = attempt.job.hold
        told = [hold] if attempt.report is not None else []
        self.world.oracles.returned(attempt.job, attempt.report)
        self.step(Ended(self.world.at, told, [] if told else [hold]))

    def _outcome(self, attempt: Attempt, *, heeds: bool) -> Report | None:
        job, behaviour = attempt.job, attempt.behaviour
        if heeds:
            if CancelReason.OPERATOR_CANCEL in attempt.reasons:
                return Report(job.hold, OutcomeKind.CANCELLED)
            return None
        if behaviour == "unroutable":
            cause = Cause("unknown_wire_name", text="nobody knows it")
            return Report(job.hold, OutcomeKind.UNROUTABLE, cause=cause)
        if behaviour in ("ok", "slow", "stubborn") or (
            behaviour == "fails once" and job.claim_number > 1
        ):
            return Report(job.hold, OutcomeKind.SUCCESS, output=f'"{job.claim_number}"')
        due = None
        if behaviour != "gives up":
            due = next_due(job.retry, job.attempt, self.now(), chance=self._chance.random())
        cause_of_end = Cause("attempts_exhausted", "Boom", "it failed") if due is None else None
        return Report(
            job.hold, OutcomeKind.FAILURE, next_due_at=due, cause=cause_of_end,
            failure_detail="Boom: it failed",
        )  # fmt: skip

    def _report(self, holds: Sequence[Hold]) -> None:
        attempts = [self._attempts[hold] for hold in holds]
        reports = [one.report for one in attempts if one.report is not None]

        def work(connection: Connection) -> list[Answer]:
            now = self.now()
            answers = outcomes.report_outcomes(connection, self.worker_id, reports, now=now)
            self.world.oracles.reported(attempts, answers, now)
            return answers

        def then(answers: list[Answer] | Exception) -> None:
            at = self.world.at
            if isinstance(answers, Exception):
                refused = not isinstance(answers, StoreUnavailable)
                self.step(ReportFailed(at, holds, refused))
                return
            pairs = list(zip(holds, answers, strict=True))
            for _, answer in pairs:
                self.world.note(f"report {answer.status.value}")
            busy = [hold for hold, answer in pairs if answer.status is AnswerStatus.BUSY]
            self.step(Reported(at, [hold for hold, _ in pairs if hold not in busy], busy))

        self.in_store(work, then)

    # Heartbeats and sweeps.

    def _beat(self) -> None:
        beat = self._renewals.beat(self.now(), self.world.at)
        if beat.lapsed:
            self.step(LeasesLost(self.world.at, beat.lapsed))
        if beat.due:
            self._renew(list(beat.due))
        if beat.regular:
            self._measure_clock()
        wait = self._renewals.wait_seconds(self.now(), self.world.at)
        self.later(min(max(wait, 0.01), RETRY_SECONDS), self._beat)

    def _renew(self, holds: list[Hold]) -> None:
        lease_seconds = self.world.plan.lease_seconds
        asked_at = self.now()

        def work(connection: Connection) -> Any:
            now = self.now()
            answers = heartbeats.renew(
                connection, self.worker_id, holds, lease_seconds=lease_seconds, now=now
            )
            renewed = [one.hold for one in answers if one.status is RenewalStatus.RENEWED]
            self.world.oracles.renewed(renewed, now)
            return answers

        def then(answers: Any) -> None:
            if isinstance(answers, Exception):
                self._renewals.not_renewed(holds, self.world.at)
                return
            by: dict[RenewalStatus, list[Hold]] = {status: [] for status in RenewalStatus}
            for answer in answers:
                by[answer.status].append(answer.hold)
            expires_at = asked_at + timedelta(seconds=lease_seconds)
            self._renewals.renewed(by[RenewalStatus.RENEWED], expires_at)
            self._renewals.not_renewed(by[RenewalStatus.BUSY], self.world.at)
            self._renewals.forget(by[RenewalStatus.LOST])
            if by[RenewalStatus.LOST]:
                self.world.note("lease lost")
                self.step(LeasesLost(self.world.at, by[RenewalStatus.LOST]))
            if asked := [answer.hold for answer in answers if answer.cancel_requested]:
                self.step(CancelAsked(self.world.at, asked))

        self.in_store(work, then)

    def _sweep(self) -> None:
        def read(connection: Connection) -> list[LapsedJob]:
            lapsed = expiry.read_lapsed(connection, now=self.now(), limit=100)
            self.world.oracles.swept(lapsed)
            return lapsed

        def then(lapsed: list[LapsedJob] | Exception) -> None:
            if isinstance(lapsed, Exception) or not lapsed:
                return
            now = self.now()
            verdicts = [
                LapseVerdict(one, next_due(one.retry, one.attempt, now, chance=0.5))
                for one in lapsed
            ]

            def expire(connection: Connection) -> int:
                count = expiry.expire(connection, verdicts, now=now)
                self.world.oracles.expired(connection, lapsed)
                return count

            self.in_store(
                expire,
                lambda count: self.world.note("swept" if count == len(verdicts) else "swept less"),
            )

        self.in_store(read, then)
        self.later(SWEEP_SECONDS, self._sweep)
