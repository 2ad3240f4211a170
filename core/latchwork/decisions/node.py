"""The worker node's logic as a state machine: ``step(event) -> commands`` (contract section 4).

It knows no thread, clock or database. Whoever drives it carries out its commands and tells it what
came of them: the asyncio pump in production, a simulator in tests. The same events in the same
order give the same commands.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import assert_never

from latchwork.decisions import dispatch
from latchwork.decisions.leases import Hold
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
from latchwork.decisions.states import CancelReason

MAX_BATCH = 500
"""Jobs of one claim or one report: transactions stay short (contract section 4)."""
INTERRUPT_SECONDS = 2.0
"""How long handlers get to end after their tokens fired at shutdown."""
FLUSH_SECONDS = 5.0
"""How long the last outcomes are tried when the database is away at shutdown."""
MAX_BACK_OFF_SECONDS = 2.0
MAX_BUSY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What a node serves and how. With ``weights`` the queues share slots, else order decides."""

    queues: Sequence[str]
    slots: int
    poll_seconds: float
    grace_seconds: float
    weights: Mapping[str, int] | None = None


class Phase(Enum):
    """The life of a node."""

    WORKING = auto()
    DRAINING = auto()
    """No claim any more; running jobs go on until the grace time is over."""
    INTERRUPTING = auto()
    """Tokens have fired; handlers get a last moment."""
    FLUSHING = auto()
    """Only outcomes are still reported."""
    STOPPED = auto()


class Node:
    """One worker node: its slots, its claims, its unreported outcomes, its end."""

    def __init__(self, plan: NodePlan) -> None:
        self.plan = plan
        self.phase = Phase.WORKING
        self._now = 0.0
        self._commands: list[Command] = []
        self._running: dict[Hold, None] = {}
        self._suspects: set[Hold] = set()
        self._lost: set[Hold] = set()
        # Claims: when each queue is looked at next, and what is under way.
        self._look_at = dict.fromkeys(plan.queues, 0.0)
        self._claims: dict[str, Claim] = {}
        self._hinted: set[str] = set()
        self._credits: dict[str, int] = {}
        self._claim_faults = 0
        self._claim_after = 0.0
        # Outcomes: waiting in order, under way, and those locked by somebody else, each by itself.
        self._outbox: list[Hold] = []
        self._reporting: Sequence[Hold] = ()
        self._alone: list[tuple[float, int, Hold]] = []
        self._alone_tries: dict[Hold, int] = {}
        self._report_faults = 0
        self._report_after = 0.0
        self._deadline = 0.0

    @property
    def running(self) -> int:
        """How many handlers have not ended."""
        return len(self._running)

    def step(self, event: Event) -> list[Command]:  # noqa: C901 - one line per event
        """Take in what happened; returns what is to be done now, in order."""
        self._now = event.at
        self._commands = []
        match event:
            case Woke():
                pass
            case Hinted():
                self._on_hint(event)
            case Claimed():
                self._on_claimed(event)
            case ClaimFailed():
                self._on_claim_failed(event)
            case Ended():
                self._on_ended(event)
            case Reported():
                self._on_reported(event)
            case ReportFailed():
                self._on_report_failed(event)
            case LeasesLost():
                self._on_lost(event)
            case CancelAsked():
                self._fire(event.holds, CancelReason.OPERATOR_CANCEL)
            case StopAsked():
                self._on_stop()
            case _ as unreachable:
                assert_never(unreachable)
        self._advance()
        return self._commands

    # What happened.

    def _on_hint(self, event: Hinted) -> None:
        for queue in self.plan.queues if event.queue is None else (event.queue,):
            if queue in self._claims:
                # The claim under way may have looked too early to see the work.
                self._hinted.add(queue)
            elif queue in self._look_at:
                self._look_at[queue] = self._now

    def _on_claimed(self, event: Claimed) -> None:
        claim = self._claims.pop(event.queue)
        self._claim_faults = 0
        if len(event.holds) < claim.limit:
            self._credits[event.queue] = 0
            if event.queue not in self._hinted:
                poll_at = self._now + self.plan.poll_seconds
                due_at = poll_at if event.next_due_at is None else event.next_due_at
                self._look_at[event.queue] = min(poll_at, due_at)
        self._hinted.discard(event.queue)
        if not event.holds:
            return
        if self.phase in (Phase.WORKING, Phase.DRAINING):
            self._running.update(dict.fromkeys(event.holds))
            self._suspects.update(event.suspects)
            self._commands.append(Run(event.holds))
        else:
            self._commands.append(Release(event.holds))

    def _on_claim_failed(self, event: ClaimFailed) -> None:
        del self._claims[event.queue]
        self._claim_faults += 1
        self._claim_after = self._now + back_off_seconds(self._claim_faults)

    def _on_ended(self, event: Ended) -> None:
        for hold in (*event.outcomes, *event.cut_off):
            del self._running[hold]
        self._suspects.difference_update(event.outcomes, event.cut_off)
        outcomes, cut_off = event.outcomes, event.cut_off
        if self._lost:
            # Somebody else may have these jobs by now: whatever came of them is not ours to tell.
            gone = [hold for hold in (*outcomes, *cut_off) if hold in self._lost]
            outcomes = [hold for hold in outcomes if hold not in self._lost]
            cut_off = [hold for hold in cut_off if hold not in self._lost]
            self._lost.difference_update(gone)
            self._order(Forget, gone)
        self._outbox.extend(outcomes)
        self._order(Release, cut_off)

    def _on_reported(self, event: Reported) -> None:
        self._reporting = ()
        self._report_faults = 0
        if self._alone_tries:
            for hold in event.settled:
                self._alone_tries.pop(hold, None)
        self._order(Forget, event.settled)
        for hold in event.busy:
            self._report_alone(hold)

    def _on_report_failed(self, event: ReportFailed) -> None:
        self._reporting = ()
        if event.refused:
            if len(event.holds) == 1:
                # It can never be told; its lease ends and the sweep decides about the job.
                self._alone_tries.pop(event.holds[0], None)
                self._order(Forget, event.holds)
            else:
                for hold in event.holds:
                    self._report_alone(hold)
            return
        self._report_faults += 1
        self._report_after = self._now + back_off_seconds(self._report_faults)
        self._outbox[:0] = event.holds

    def _on_lost(self, event: LeasesLost) -> None:
        lost = [hold for hold in event.holds if hold in self._running and hold not in self._lost]
        self._lost.update(lost)
        self._fire(lost, CancelReason.LEASE_LOST)

    def _on_stop(self) -> None:
        if self.phase is Phase.WORKING:
            self.phase = Phase.DRAINING
            self._deadline = self._now + self.plan.grace_seconds
        else:
            self._deadline = min(self._deadline, self._now)

    # What is to be done.

    def _advance(self) -> None:
        if self.phase is not Phase.WORKING:
            self._advance_shutdown()
        if self.phase is Phase.STOPPED:
            return
        if self.phase is Phase.WORKING:
            # First: slots wait for a claim, nobody for a report, and SQLite takes one at a time.
            self._send_claims()
        self._send_reports()
        self._set_alarm()

    def _advance_shutdown(self) -> None:
        if self.phase is Phase.DRAINING and self._running and self._now >= self._deadline:
            self.phase = Phase.INTERRUPTING
            self._deadline = self._now + INTERRUPT_SECONDS
            self._fire(tuple(self._running), CancelReason.SHUTDOWN)
        if self.phase in (Phase.DRAINING, Phase.INTERRUPTING) and (
            not (self._running or self._claims) or self._now >= self._deadline
        ):
            self.phase = Phase.FLUSHING
            self._deadline = max(self._deadline, self._now + FLUSH_SECONDS)
        if self.phase is Phase.FLUSHING and (
            not (self._unreported() or self._claims) or self._now >= self._deadline
        ):
            self.phase = Phase.STOPPED
            self._commands.append(Stop(tuple(self._running)))

    def _send_reports(self) -> None:
        if self._reporting or self._now < self._report_after:
            return
        if self._alone and self._alone[0][0] <= self._now:
            self._reporting = (heapq.heappop(self._alone)[2],)
        elif self._outbox:
            self._reporting = tuple(self._outbox[:MAX_BATCH])
            del self._outbox[:MAX_BATCH]
        self._order(ReportOutcomes, self._reporting)

    def _send_claims(self) -> None:
        if self._now < self._claim_after:
            return
        while shares := self._share_slots():
            for queue, limit in shares.items():
                suspect_free = not self._suspects and not any(
                    claim.allow_suspect for claim in self._claims.values()
                )
                self._claims[queue] = Claim(queue, limit, suspect_free)
                self._commands.append(self._claims[queue])

    def _share_slots(self) -> dict[str, int]:
        ready = {
            queue
            for queue, look_at in self._look_at.items()
            if look_at <= self._now and queue not in self._claims
        }
        free = min(self._free_slots(), MAX_BATCH)
        if free <= 0 or not ready:
            return {}
        if self.plan.weights is None:
            return dispatch.strict(self.plan.queues, ready, free, self._claims)
        shares, self._credits = dispatch.weighted(
            self.plan.weights, self._credits, ready, free, self._claims
        )
        return shares

    def _free_slots(self) -> int:
        """Slots that neither a handler nor a claim under way has taken.

        Unreported outcomes take none, up to as many as there are slots: while the database is away
        they must not pile up.
        """
        taken = len(self._running) + sum(claim.limit for claim in self._claims.values())
        return self.plan.slots - taken - max(0, self._unreported() - self.plan.slots)

    def _unreported(self) -> int:
        return len(self._outbox) + len(self._reporting) + len(self._alone)

    def _report_alone(self, hold: Hold) -> None:
        tries = self._alone_tries.get(hold, 0) + 1
        self._alone_tries[hold] = tries
        pause = min(MAX_BUSY_SECONDS, 0.05 * 2.0 ** min(tries, 10))
        heapq.heappush(self._alone, (self._now + pause, hold.sequence, hold))

    def _set_alarm(self) -> None:
        moments: list[float] = []
        if not self._reporting:
            # Otherwise the answer of the report under way is what the others wait for.
            moments += [max(entry[0], self._report_after) for entry in self._alone[:1]]
            moments += [self._report_after] if self._outbox else []
        if self.phase is not Phase.WORKING:
            moments.append(self._deadline)
        elif self._free_slots() > 0:
            idle = [at for queue, at in self._look_at.items() if queue not in self._claims]
            if self._claims:
                # Queues that are ready wait for the answer of these.
                idle = [at for at in idle if at > self._now]
            if idle:
                moments.append(max(min(idle), self._claim_after))
        if moments:
            self._commands.append(WakeAt(min(moments)))

    def _fire(self, holds: Sequence[Hold], reason: CancelReason) -> None:
        running = [hold for hold in holds if hold in self._running]
        if running:
            self._commands.append(FireTokens(running, reason))

    def _order(
        self, command: type[Forget | Release | ReportOutcomes], holds: Sequence[Hold]
    ) -> None:
        if holds:
            self._commands.append(command(holds))


def back_off_seconds(faults: int) -> float:
    """The pause after the store failed this often in a row."""
    return min(MAX_BACK_OFF_SECONDS, 0.1 * 2.0 ** min(faults - 1, 10))
