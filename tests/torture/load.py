"""Work that is made to collide: small pools of parents, operators who press at the same instant."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from uuid import UUID

from uuid_utils.compat import uuid7

from latchwork import (
    DependencyMode,
    JobContext,
    JobState,
    LatchworkError,
    OutcomeUnknown,
    StoreBusy,
    StoreUnavailable,
    Workflow,
)
from latchwork.action_results import CancelOutcome, CancelResult, RequeueResult
from latchwork.decisions.workflows import RetryScope
from latchwork.jobs import JobCall
from latchwork.views import JobFilter
from tests.torture.node import QUEUES, make_app

LIVE = tuple(state for state in JobState if not state.terminal)
DEAD = (JobState.DEAD_LETTERED, JobState.QUARANTINED)
CUSTOMERS = 3
OPERATORS = 2
PATIENCE_SECONDS = 30.0
TOGETHER_SECONDS = 3.0
AWAY = (StoreUnavailable, StoreBusy, OutcomeUnknown)
"""What a caller may be told while the database is away or held up."""


class Load:
    """Customers and operators in threads of this process, until ``stop``."""

    def __init__(self, database_url: str, seed: int, *, most_unfinished: int = 250) -> None:
        self.app = make_app(database_url, witness=None)
        self.app.job("unknown", queue="c")(nobody)
        self.accepted: list[UUID] = []
        self.findings: list[str] = []
        self._cancelled: set[UUID] = set()
        self._recent: deque[UUID] = deque(maxlen=12)
        self._of_workflows: set[UUID] = set()
        self._workflows: deque[UUID] = deque(maxlen=6)
        self._most_unfinished = most_unfinished
        self._stopping = threading.Event()
        self._together = threading.Barrier(OPERATORS)
        self._lock = threading.Lock()
        self._unfinished, self._counted_at = 0, 0.0
        self._threads = [
            threading.Thread(target=self._act, args=(routine, f"{seed}-{number}"), daemon=True)
            for number, routine in enumerate([self._order] * CUSTOMERS + [self._press] * OPERATORS)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Nothing new from now on."""
        self._stopping.set()
        self._together.abort()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            if thread.is_alive():
                self.findings.append(f"{thread.name} waits without end")

    def enqueue_surely(self, call: JobCall, queue: str, parents: Sequence[UUID] = ()) -> UUID:
        """Enqueue one job, again under the same id until it is answered."""
        job_id = uuid7()
        while True:
            try:
                if parents:
                    self.app.client.enqueue_dependency(
                        call, parent=parents[0], job_id=job_id, exist_ok=True, queue=queue,
                        mode=random.choice(list(DependencyMode)),  # noqa: S311
                    )  # fmt: skip
                else:
                    self.app.client.enqueue(call, job_id=job_id, exist_ok=True, queue=queue)
            except AWAY:
                if self._stopping.wait(0.1):
                    raise
            else:
                self._accept([job_id])
                return job_id

    def _accept(self, ids: Sequence[UUID]) -> None:
        with self._lock:
            self.accepted += ids
            self._recent.extend(ids)

    def _act(self, routine: Callable[[random.Random], None], seed: str) -> None:
        chance = random.Random(seed)  # noqa: S311 - only the faults need no seed
        while not self._stopping.is_set():
            try:
                routine(chance)
            except AWAY:
                self._stopping.wait(0.05)
            except threading.BrokenBarrierError:
                self._together.reset()  # the other operator had to wait for the database
            except LatchworkError as error:
                self.findings.append(f"{routine.__name__} was told {error!r}")
            except Exception as error:  # noqa: BLE001 - nothing may leave the store raw
                self.findings.append(f"{routine.__name__} met a raw {error!r}")

    def _call(self, chance: random.Random) -> JobCall:
        types = self.app.job_types
        match chance.randrange(10):
            case 0:
                return types["hopeless"].bind()
            case 1:
                return types["unknown"].bind()
            case 2 | 3:
                return types["flaky"].bind(failures=chance.randint(1, 4))
            case 4:
                return types["block"].bind(milliseconds=chance.choice((1, 20, 200, 700, 1500)))
            case _:
                return types["work"].bind(milliseconds=chance.choice((0, 0, 5, 30, 100, 400, 1500)))

    def _order(self, chance: random.Random) -> None:
        """Put in a job, a crowd, a dependent of something that runs just now, or a workflow."""
        if self._too_many():
            self._stopping.wait(0.1)
            return
        self._stopping.wait(chance.random() * 0.03)
        queue = chance.choice(QUEUES)
        recent = list(self._recent)
        match chance.randrange(6):
            case 0:
                calls = [self._call(chance) for _ in range(chance.randint(2, 6))]
                self._accept(self.app.client.enqueue_many(calls, queue=queue))
            case 1:
                self._start_workflow(chance)
            case 2 | 3 if recent:
                self.enqueue_surely(self._call(chance), queue, [chance.choice(recent)])
            case _:
                self.enqueue_surely(self._call(chance), queue)

    def _start_workflow(self, chance: random.Random) -> None:
        workflow = Workflow("order")
        names: list[str] = []
        for number in range(chance.randint(3, 7)):
            after = chance.sample(names, min(len(names), chance.randint(0, 3)))
            mode = chance.choice(list(DependencyMode))
            workflow.add(f"step-{number}", self._call(chance), after=after, mode=mode)
            names.append(f"step-{number}")
        started = self.app.client.start_workflow(workflow)
        self._of_workflows.update(started.jobs.values())
        self._accept(list(started.jobs.values()))
        self._workflows.append(started.id)

    def _press(self, chance: random.Random) -> None:
        """Two operators choose one job and act on it at the same instant."""
        self._stopping.wait(0.05)
        if self._together.wait(TOGETHER_SECONDS) == 0:
            self._target = self._choose(chance)
        self._together.wait(TOGETHER_SECONDS)
        if chance.random() < 0.2:
            self._press_workflow(chance)
        if (target := self._target) is None:
            return
        action = chance.choice((self.app.operator.cancel, self.app.operator.requeue))
        answer: CancelResult | RequeueResult = action(target, actor="operator")
        if answer.outcome is CancelOutcome.CANCELLED:
            with self._lock:
                if target in self._cancelled:
                    self.findings.append(f"two operators cancelled {target}")
                if target not in self._of_workflows:  # those may come back and be cancelled again
                    self._cancelled.add(target)

    def _press_workflow(self, chance: random.Random) -> None:
        """Cancel a recent workflow or retry it, whatever its state."""
        if not (recent := list(self._workflows)):
            return
        workflow_id = chance.choice(recent)
        if chance.random() < 0.3:
            self.app.operator.cancel_workflow(workflow_id, actor="operator")
        else:
            scope = chance.choice(list(RetryScope))
            self.app.operator.retry_workflow(workflow_id, scope=scope, actor="operator")

    _target: UUID | None = None

    def _choose(self, chance: random.Random) -> UUID | None:
        """A job that was just put in, or a dead one."""
        if chance.random() < 0.5:
            recent = list(self._recent)
            return chance.choice(recent) if recent else None
        try:
            dead = self.app.monitor.jobs(JobFilter(states=DEAD), limit=10).jobs
        except AWAY:
            return None
        return chance.choice(dead).id if dead else None

    def _too_many(self) -> bool:
        if time.monotonic() - self._counted_at > 0.3:
            self._counted_at = time.monotonic()
            totals = self.app.monitor.counts().by_state
            self._unfinished = sum(totals[state] for state in LIVE)
        return self._unfinished > self._most_unfinished


def nobody(context: JobContext) -> None:
    """A job type that no node knows."""
