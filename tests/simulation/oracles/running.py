"""What must hold while a world runs, and the witness who sees what the handlers did."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection, bindparam, exists, func, select

from latchwork.decisions.leases import Hold
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.store import schema
from latchwork.store.claiming import ClaimedJob
from latchwork.store.expiry import LapsedJob
from latchwork.store.outcomes import Answer, AnswerStatus, Report

if TYPE_CHECKING:
    from tests.simulation.node import Attempt
    from tests.simulation.world import World

S = JobState
MOMENT = timedelta(microseconds=1)
Claim = tuple[UUID, int]

_GATE = select(schema.queues.c.paused_at, schema.queues.c.concurrency_limit).where(
    schema.queues.c.name == bindparam("queue")
)
_LEASED = (
    select(func.count())
    .select_from(schema.jobs)
    .where(schema.jobs.c.queue == bindparam("queue"), schema.jobs.c.state == S.LEASED)
)
_STATE = select(schema.jobs.c.state).where(schema.jobs.c.sequence == bindparam("sequence"))
_DUE = select(schema.jobs.c.mode, schema.jobs.c.due_at).where(
    schema.jobs.c.sequence == bindparam("sequence")
)
# A parent that a workflow's retry brought back had succeeded: its outside children stay released.
_NEVER_SUCCEEDED = (
    select(schema.jobs.c.payload)
    .join(schema.edges, schema.edges.c.parent_sequence == schema.jobs.c.sequence)
    .where(
        schema.edges.c.child_sequence == bindparam("sequence"),
        ~exists().where(
            schema.transitions.c.job_sequence == schema.jobs.c.sequence,
            schema.transitions.c.state == S.SUCCEEDED,
        ),
    )
)


class Oracles:
    """Judges a world while it runs; ``findings`` is what it saw wrong.

    What it saw besides is evidence for the oracles that look at the tables when all is over.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self.findings: list[str] = []
        self.enqueued_ids: set[UUID] = set()
        self.purged_ids: set[UUID] = set()
        self.cancels_tried: set[UUID] = set()
        self.accepted: dict[Claim, Report] = {}
        self._claims: dict[UUID, int] = {}
        # By enqueue number: the latest claim.
        self._latest: dict[int, int] = {}
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
        self.enqueued_ids.update(ids)

    def clock_stepped(self) -> None:
        """After a step nobody's lease is certain."""
        self._leases.clear()
        self._expiries.clear()

    def claimed(
        self,
        connection: Connection,
        worker: str,
        queue: str,
        jobs: Sequence[ClaimedJob],
        now: datetime,
    ) -> None:
        """A claim's rows, in the transaction that wrote them at the store's ``now``."""
        if not jobs:
            return
        gate = connection.execute(_GATE, {"queue": queue}).one()
        if gate.paused_at is not None:
            self.found(f"{worker} claimed from {queue}, which is paused")
        count = connection.scalar(_LEASED, {"queue": queue}) or 0
        if gate.concurrency_limit is not None and count > gate.concurrency_limit:
            self.found(f"{count} jobs of {queue} are Leased, its limit is {gate.concurrency_limit}")
        for job in jobs:
            self._one_claim(connection, job, now)
        suspects = sum(job.suspect for job in jobs)
        if suspects:
            self._world.note("claimed a suspect")
        if suspects > 1:
            self.found(f"{worker} claimed {suspects} suspects at once")

    def _one_claim(self, connection: Connection, job: ClaimedJob, now: datetime) -> None:
        if self._world.at < self._leases.get(job.sequence, 0.0):
            self.found(f"job {job.payload} was claimed while another's lease on it ran")
        self._lease_begins(job.sequence, job.lease_expires_at)
        if job.id in self._asked:
            self.found(f"job {job.payload} was asked to stop and is claimed again")
        if job.claim_number <= self._claims.get(job.id, 0):
            self.found(f"job {job.payload}: claim number {job.claim_number} was given before")
        self._claims[job.id] = self._latest[job.sequence] = job.claim_number
        if job.attempt > job.retry.max_attempts:
            self.found(f"job {job.payload}: attempt {job.attempt} of {job.retry.max_attempts}")
        row = connection.execute(_DUE, {"sequence": job.sequence}).one()
        if row.due_at > now:
            self.found(f"job {job.payload} was claimed before it was due")
        if row.mode is DependencyMode.ON_SUCCESS:
            for parent in connection.scalars(_NEVER_SUCCEEDED, {"sequence": job.sequence}):
                self.found(f"job {job.payload} runs, its parent {parent} never succeeded")

    def renewed(self, holds: Iterable[Hold], now: datetime) -> None:
        """These leases were renewed at the store's ``now``, in the transaction that did it."""
        for hold in holds:
            if hold.claim_number != self._latest.get(hold.sequence):
                self.found(f"the lease of another claim of job number {hold.sequence} was renewed")
            if self._expiries.get(hold.sequence, now + MOMENT) <= now:
                self.found(f"the lease of job number {hold.sequence} had lapsed and was renewed")
            expires_at = now + timedelta(seconds=self._world.plan.lease_seconds)
            self._lease_begins(hold.sequence, expires_at)

    def released(self, holds: Iterable[Hold]) -> None:
        """These leases were given up."""
        for hold in holds:
            if hold.claim_number == self._latest.get(hold.sequence):
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

    def cancel_tried(self, job_ids: Collection[UUID]) -> None:
        """An operator pressed cancel for these, whatever comes of it."""
        self.cancels_tried.update(job_ids)

    def asked_to_stop(self, job_id: UUID) -> None:
        """An operator's cancel of a running job was taken: it must not be claimed again."""
        self._asked.add(job_id)

    def given_new_lives(self, job_ids: Collection[UUID]) -> None:
        """These may have been brought back: what was asked of them before is over."""
        self._asked.difference_update(job_ids)

    def purged(self, before: Mapping[UUID, JobState], after: Collection[UUID]) -> None:
        """What was stored before a purge and after it."""
        for gone in before.keys() - after:
            self.purged_ids.add(gone)
            if not before[gone].terminal:
                self.found(f"a purge took {gone}, which was {before[gone]}")

    def reported(
        self, attempts: Sequence["Attempt"], answers: Sequence[Answer], now: datetime
    ) -> None:
        """The store's answers to a report, as it gave them at its ``now``."""
        for attempt, answer in zip(attempts, answers, strict=True):
            claim = (attempt.job.id, attempt.job.claim_number)
            if answer.status is AnswerStatus.APPLIED:
                self._applied[claim] += 1
                self._accept(claim, attempt)
                self._leases.pop(attempt.job.sequence, None)
                if self._expiries.get(attempt.job.sequence, now + MOMENT) <= now:
                    self.found(f"job {attempt.job.payload}: applied, though its lease had lapsed")
                if self._applied[claim] > 1:
                    self.found(f"job {attempt.job.payload}: claim {claim[1]} was applied twice")
                if claim[1] != self._claims.get(claim[0]):
                    self.found(f"job {attempt.job.payload}: claim {claim[1]} is not the latest")
            elif answer.status is AnswerStatus.ALREADY_APPLIED and not self._applied[claim]:
                self.found(f"job {attempt.job.payload}: already applied, but never was")

    def _accept(self, claim: Claim, attempt: "Attempt") -> None:
        returned = self._returned.get(claim)
        if returned is None or returned != attempt.report:
            self.found(f"job {attempt.job.payload}: applied what no handler returned")
        else:
            self.accepted[claim] = returned

    def expired(self, connection: Connection, lapsed: Sequence[LapsedJob]) -> None:
        """A sweep wrote what it had read a while ago, in this transaction."""
        for one in lapsed:
            if self._world.at < self._leases.get(one.sequence, 0.0):
                state = connection.scalar(_STATE, {"sequence": one.sequence})
                if state is not S.LEASED:
                    self.found(f"job number {one.sequence} was swept while a new lease ran")

    def swept(self, lapsed: Sequence[LapsedJob]) -> None:
        """What a sweep read as lapsed."""
        for one in lapsed:
            if self._world.at < self._leases.get(one.sequence, 0.0):
                self.found(f"job number {one.sequence} was read as lapsed while its lease ran")
            if self._world.calm_for(one.owner) > 2 * self._world.plan.lease_seconds:
                self.found(f"{one.owner} let a lease lapse although nothing hindered it")
