"""What must hold in every world, and the witness who sees what the handlers did."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection, func, select

from latchwork.decisions.leases import Hold
from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.decisions.transitions import EDGES, Edge
from latchwork.store import schema
from latchwork.store.claiming import ClaimedJob
from latchwork.store.expiry import LapsedJob
from latchwork.store.outcomes import Answer, AnswerStatus, Report
from latchwork.store.policies import decode_policy
from tests.audit import audit

if TYPE_CHECKING:
    from tests.simulation.node import Attempt
    from tests.simulation.world import World

S = JobState
MOMENT = timedelta(microseconds=1)
Claim = tuple[UUID, int]


class Oracles:
    """Judges a world while it runs and when it is over; ``findings`` is what it saw wrong."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.findings: list[str] = []
        self._accepted: set[UUID] = set()
        self._claims: dict[UUID, int] = {}
        # By enqueue number: until when a lease is certain, in the world's seconds.
        self._leases: dict[int, float] = {}
        # By enqueue number: when the lease ends as the store has it.
        self._expiries: dict[int, datetime] = {}
        self._asked: set[UUID] = set()
        self._applied: Counter[Claim] = Counter()
        self._returned: dict[Claim, Report | None] = {}

    def found(self, sentence: str) -> None:
        """Something does not hold."""
        self.findings.append(f"at {self._world.at:.3f}: {sentence}")

    # Told as it happens.

    def enqueued(self, ids: Iterable[UUID]) -> None:
        """An enqueue was answered: these exist from now on."""
        self._accepted.update(ids)

    def clock_stepped(self) -> None:
        """After a step nobody's lease is certain."""
        self._leases.clear()
        self._expiries.clear()

    def claimed(
        self, connection: Connection, worker: str, queue: str, jobs: Sequence[ClaimedJob]
    ) -> None:
        """A claim's rows, in the transaction that wrote them."""
        if not jobs:
            return
        gate = connection.execute(select(schema.queues).where(schema.queues.c.name == queue)).one()
        if gate.paused_at is not None:
            self.found(f"{worker} claimed from {queue}, which is paused")
        leased = (schema.jobs.c.queue == queue) & (schema.jobs.c.state == S.LEASED)
        count = connection.scalar(select(func.count()).where(leased)) or 0
        if gate.concurrency_limit is not None and count > gate.concurrency_limit:
            self.found(f"{count} jobs of {queue} are Leased, its limit is {gate.concurrency_limit}")
        for job in jobs:
            self._one_claim(connection, job)

    def _one_claim(self, connection: Connection, job: ClaimedJob) -> None:
        if self._world.at < self._leases.get(job.sequence, 0.0):
            self.found(f"job {job.payload} was claimed while another's lease on it ran")
        self._lease_begins(job.sequence, job.lease_expires_at)
        if job.id in self._asked:
            self.found(f"job {job.payload} was asked to stop and is claimed again")
        if job.claim_number <= self._claims.get(job.id, 0):
            self.found(f"job {job.payload}: claim number {job.claim_number} was given before")
        self._claims[job.id] = job.claim_number
        if job.attempt > job.retry.max_attempts:
            self.found(f"job {job.payload}: attempt {job.attempt} of {job.retry.max_attempts}")
        row = connection.execute(
            select(schema.jobs.c.mode, schema.jobs.c.workflow_id).where(
                schema.jobs.c.sequence == job.sequence
            )
        ).one()
        if row.mode is DependencyMode.ON_SUCCESS:
            parents = (
                select(schema.jobs.c.payload)
                .join(schema.edges, schema.edges.c.parent_sequence == schema.jobs.c.sequence)
                .where(schema.edges.c.child_sequence == job.sequence)
                .where(schema.jobs.c.state != S.SUCCEEDED)
                # A retry moves no dependents outside its workflow: their parents may run again.
                .where(schema.jobs.c.workflow_id.is_not_distinct_from(row.workflow_id))
            )
            for parent in connection.scalars(parents):
                self.found(f"job {job.payload} runs, its parent {parent} has not succeeded")
        if job.suspect:
            self._world.note("claimed a suspect")

    def renewed(self, holds: Iterable[Hold], now: datetime) -> None:
        """These leases were renewed at the store's ``now``, in the transaction that did it."""
        for hold in holds:
            if self._expiries.get(hold.sequence, now) < now:
                self.found(f"the lease of job number {hold.sequence} had lapsed and was renewed")
            expires_at = now + timedelta(seconds=self._world.plan.lease_seconds)
            self._lease_begins(hold.sequence, expires_at)

    def released(self, holds: Iterable[Hold]) -> None:
        """These leases were given up."""
        for hold in holds:
            self._leases.pop(hold.sequence, None)
            self._expiries.pop(hold.sequence, None)

    def _lease_begins(self, sequence: int, expires_at: datetime) -> None:
        plan = self._world.plan
        self._expiries[sequence] = expires_at
        self._leases[sequence] = self._world.at + plan.lease_seconds - 2 * plan.skew_seconds

    def began(self, job: ClaimedJob) -> None:
        """A handler began."""
        claim = (job.id, job.claim_number)
        if claim in self._returned:
            self.found(f"job {job.payload}: the handler of claim {job.claim_number} began twice")
        self._returned[claim] = None
        self._world.note(f"ran by {'its first' if job.claim_number == 1 else 'a later'} claim")

    def returned(self, job: ClaimedJob, report: Report | None) -> None:
        """A handler ended with this to report."""
        self._returned[job.id, job.claim_number] = report

    def asked_to_stop(self, job_id: UUID) -> None:
        """An operator's cancel of a running job was taken: it must not be claimed again."""
        self._asked.add(job_id)

    def given_new_lives(self) -> None:
        """Ended jobs were brought back: what was asked of them before is over."""
        self._asked.clear()

    def reported(
        self, attempts: Sequence["Attempt"], answers: Sequence[Answer], now: datetime
    ) -> None:
        """The store's answers to a report, as it gave them at its ``now``."""
        for attempt, answer in zip(attempts, answers, strict=True):
            claim = (attempt.job.id, attempt.job.claim_number)
            if answer.status is AnswerStatus.APPLIED:
                self._applied[claim] += 1
                self._leases.pop(attempt.job.sequence, None)
                if self._expiries.get(attempt.job.sequence, now + MOMENT) <= now:
                    self.found(f"job {attempt.job.payload}: applied, though its lease had lapsed")
                if self._applied[claim] > 1:
                    self.found(f"job {attempt.job.payload}: claim {claim[1]} was applied twice")
                if claim[1] != self._claims.get(claim[0]):
                    self.found(f"job {attempt.job.payload}: claim {claim[1]} is not the latest")
            elif answer.status is AnswerStatus.ALREADY_APPLIED and not self._applied[claim]:
                self.found(f"job {attempt.job.payload}: already applied, but never was")

    def swept(self, lapsed: Sequence[LapsedJob]) -> None:
        """What a sweep read as lapsed."""
        for one in lapsed:
            if self._world.at < self._leases.get(one.sequence, 0.0):
                self.found(f"job number {one.sequence} was read as lapsed while its lease ran")
            if self._world.calm_for(one.owner) > 2 * self._world.plan.lease_seconds:
                self.found(f"{one.owner} let a lease lapse although nothing hindered it")

    # Asked when faults are over, and at the end.

    def audit(self, connection: Connection) -> list[str]:
        """Everything the tables must say."""
        problems = audit(connection)
        stored = set(connection.scalars(select(schema.jobs.c.id)))
        purged = self._world.reached["purged"]
        if not purged:
            problems += [f"job {one} was accepted and is gone" for one in self._accepted - stored]
        problems += self._ceilings(connection)
        self._note_moves(connection)
        return problems

    def _ceilings(self, connection: Connection) -> list[str]:
        jobs, log = schema.jobs, schema.transitions
        highest = (
            select(jobs.c.payload, jobs.c.retry_policy, func.max(log.c.attempt).label("attempt"))
            .join(log, log.c.job_sequence == jobs.c.sequence)
            .group_by(jobs.c.sequence)
        )
        over = []
        for row in connection.execute(highest):
            policy: RetryPolicy = decode_policy(row.retry_policy)
            if row.attempt > policy.max_attempts:
                over.append(f"job {row.payload}: attempt {row.attempt} of {policy.max_attempts}")
        return over

    def _note_moves(self, connection: Connection) -> None:
        log = schema.transitions
        moves = select(log.c.previous_state, log.c.state, log.c.event).distinct()
        for source, target, event in connection.execute(moves):
            for edge in EDGES:
                if (edge.source, edge.target) == (source, target) and event in edge.events:
                    self._world.note(name_of(edge))


def name_of(edge: Edge) -> str:
    """How the coverage report names a transition."""
    return f"edge {edge.number}: {edge.source or 'born'} -> {edge.target}"
