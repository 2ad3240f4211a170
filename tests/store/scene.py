"""A small world for tests of what is read: real writes at chosen times."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from latchwork.decisions.leases import Hold
from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.monitor import Monitor
from latchwork.store import claiming, enqueueing, expiry, heartbeats, operator_actions, outcomes
from latchwork.store.database import Database
from latchwork.store.enqueueing import NewJob
from latchwork.store.moves import Cause
from latchwork.store.outcomes import OutcomeKind, Report
from latchwork.views import JobView, Tag
from tests.clocks import SetClock

WORKER = "host-1-abc"
KINDS = {
    JobState.SUCCEEDED: OutcomeKind.SUCCESS,
    JobState.DEAD_LETTERED: OutcomeKind.FAILURE,
    JobState.CANCELLED: OutcomeKind.CANCELLED,
    JobState.QUARANTINED: OutcomeKind.UNROUTABLE,
}


class Scene:
    """Enqueues and runs jobs by hand; ``now`` moves only when told to."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.monitor = Monitor(database)
        self.now = datetime.now(UTC)
        database.clock = SetClock(lambda: self.now)

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def enqueue(
        self,
        wire_name: str = "charge-card",
        *,
        queue: str = "default",
        parents: tuple[UUID, ...] = (),
        mode: DependencyMode = DependencyMode.ON_SUCCESS,
        tags: tuple[Tag, ...] = (),
        due_in: float = 0,
        retry: RetryPolicy | None = None,
        step: str | None = None,
    ) -> UUID:
        job = NewJob(
            id=uuid7(), wire_name=wire_name, queue=queue, payload='{"order":"42"}',
            retry=retry or RetryPolicy(), due_at=self.now + timedelta(seconds=due_in), tags=tags,
            parents=parents, mode=mode, step=step,
        )  # fmt: skip
        self.database.write(enqueueing.insert_jobs, [job], now=self.now)
        return job.id

    def enqueue_many(self, count: int, **chosen: Any) -> list[UUID]:
        made = [
            NewJob(
                id=uuid7(), wire_name=chosen.get("wire_name", "charge-card"),
                queue=chosen.get("queue", "default"), payload="{}", retry=RetryPolicy(),
                due_at=self.now, tags=chosen.get("tags", ()), parents=chosen.get("parents", ()),
            )
            for _ in range(count)
        ]  # fmt: skip
        self.database.write(enqueueing.insert_jobs, made, now=self.now)
        return [job.id for job in made]

    def claim(
        self, limit: int = 1, *, queue: str = "default", worker: str = WORKER
    ) -> list[claiming.ClaimedJob]:
        return self.database.write(
            claiming.claim,
            worker_id=worker,
            queue=queue,
            limit=limit,
            lease_seconds=60,
            now=self.now,
        ).jobs

    def end(
        self,
        claimed: claiming.ClaimedJob,
        state: JobState,
        *,
        worker: str = WORKER,
        output: str | None = None,
        retry_in: float | None = None,
        cause: Cause | None = None,
    ) -> None:
        """Report how a claimed job ended; ``retry_in`` makes its failure a retry."""
        if state is JobState.SCHEDULED:
            kind, due = OutcomeKind.FAILURE, self.now + timedelta(seconds=retry_in or 0)
        else:
            kind, due = KINDS[state], None
        if state is JobState.CANCELLED:
            self.cancel(claimed.id)  # nobody is cancelled unasked
        if cause is None and state in (JobState.DEAD_LETTERED, JobState.QUARANTINED):
            cause = Cause("attempts_exhausted", type="ValueError", text="a secret")
        report = Report(
            Hold(claimed.sequence, claimed.attempt, claimed.claim_number), kind, next_due_at=due,
            cause=cause, output=output,
            failure_detail="Traceback ..." if kind is OutcomeKind.FAILURE else None,
        )  # fmt: skip
        self.database.write(outcomes.report_outcomes, worker, [report], now=self.now, wait=True)

    def run(self, state: JobState, *, queue: str = "default", **how: Any) -> UUID:
        """Claim the next due job and end it."""
        (claimed,) = self.claim(queue=queue)
        self.end(claimed, state, **how)
        return claimed.id

    def cancel(self, job_id: UUID, actor: str = "ann") -> None:
        self.database.write(operator_actions.cancel, job_id, actor=actor, now=self.now)

    def requeue(self, job_id: UUID, actor: str = "ann") -> None:
        self.database.write(operator_actions.requeue, job_id, actor=actor, now=self.now)

    def beat(self, claimed: claiming.ClaimedJob, worker: str = WORKER) -> None:
        hold = Hold(claimed.sequence, claimed.attempt, claimed.claim_number)
        self.database.write(heartbeats.renew, worker, [hold], lease_seconds=60, now=self.now)

    def sweep(self, *, retry_in: float | None = None) -> None:
        """Take back every lapsed lease; without ``retry_in`` the jobs are dead-lettered."""
        lapsed = self.database.read(expiry.read_lapsed, now=self.now, limit=500)
        due = None if retry_in is None else self.now + timedelta(seconds=retry_in)
        verdicts = [expiry.LapseVerdict(job, due) for job in lapsed]
        self.database.write(expiry.expire, verdicts, now=self.now)

    def start_node(
        self,
        worker: str = WORKER,
        *,
        queues: tuple[str, ...] = ("default",),
        wire_names: tuple[str, ...] = ("charge-card",),
    ) -> None:
        record = heartbeats.NodeRecord(
            worker_id=worker, host="host", pid=1, version="0", started_at=self.now,
            heartbeat_seconds=20, slots=20, queues=queues, wire_names=wire_names,
        )  # fmt: skip
        self.database.write(heartbeats.register_node, record)

    def job(self, job_id: UUID) -> JobView:
        found = self.monitor.job(job_id)
        assert found is not None
        return found
