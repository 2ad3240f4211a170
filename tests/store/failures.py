"""Failed jobs for tests of groups and operations."""

from uuid import UUID

from latchwork.decisions.states import JobState
from latchwork.maintenance.bulk_runner import BulkRunner
from latchwork.maintenance.failure_grouper import FailureGrouper
from latchwork.monitor import Monitor
from latchwork.operations import Operator
from latchwork.store.moves import Cause
from tests.clocks import SetClock
from tests.store.builders import Store

CODE = "attempts_exhausted"


class Failures:
    """A store with failed jobs, its monitor and operator, all at the test's own time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.database = store.database
        self.database.prepare()
        self.database.clock = SetClock(lambda: store.now)
        self.monitor = Monitor(self.database)
        self.operator = Operator(self.database)

    def fail(
        self,
        text: str | None = "order 1 is gone",
        *,
        wire_name: str = "pack",
        kind: str | None = "KeyError",
        state: JobState = JobState.DEAD_LETTERED,
        queue: str | None = None,
    ) -> UUID:
        """A job that failed for good."""
        given = {"wire_name": wire_name} | ({} if queue is None else {"queue": queue})
        job_id = self.store.enqueue(**given)
        self.store.end(job_id, state, cause=Cause(CODE, kind, text))
        return job_id

    def fail_many(self, count: int) -> list[UUID]:
        """Many jobs of one cause."""
        return [self.fail(f"order {number} is gone") for number in range(count)]

    def sort(self) -> None:
        """Let the sweep sort what has failed."""
        sweep = FailureGrouper(self.database)
        while sweep.run_once():
            pass

    def work_off(self, runner: BulkRunner | None = None) -> None:
        """Let a service work off what there is to do."""
        runner = runner or BulkRunner(self.database)
        while runner.run_once():
            pass

    def group_of(self, job_id: UUID) -> str:
        """The key of a job's group."""
        key: str = self.store.row(job_id).cause_group
        assert key is not None
        return key
