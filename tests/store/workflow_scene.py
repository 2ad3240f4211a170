"""A small world for tests of workflows: an application whose members are ended by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from latchwork.client import Client
from latchwork.context import JobContext
from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import JobState
from latchwork.jobs import JobCall, JobType
from latchwork.monitor import Monitor
from latchwork.operations import Operator
from latchwork.store.claiming import ClaimedJob
from latchwork.workflows import StartedWorkflow, Steps, Workflow
from tests.clocks import SetClock
from tests.store.builders import ON_ANY_TERMINAL, Store

T = TypeVar("T", bound=Steps)
ACTOR = "anna"
S = JobState


def pack(context: JobContext, number: int = 0) -> None:
    """A handler that is never called: the tests end the jobs themselves."""


def call(number: int = 0, *, wire_name: str = "pack", queue: str = "work") -> JobCall:
    """A call of a job type of this name."""
    job_type = JobType(
        pack, wire_name=wire_name, queue=queue, retry=RetryPolicy(max_attempts=3),
        tags=("parcel",), interrupt=True, timeout_seconds=None,
    )  # fmt: skip
    return job_type.bind(number)


@dataclass
class Flow:
    """A store, and what the public face of the application does with workflows on it."""

    store: Store
    client: Client = field(init=False)
    monitor: Monitor = field(init=False)
    operator: Operator = field(init=False)

    def __post_init__(self) -> None:
        """Let everybody live in the test's time."""
        self.store.database.prepare()
        self.store.database.clock = SetClock(lambda: self.store.now)
        self.client = Client(self.store.database)
        self.monitor = Monitor(self.store.database)
        self.operator = Operator(self.store.database)

    def start(self, **parents: str) -> StartedWorkflow:
        """Start a workflow of steps, each named with what it waits for: ``c="a b"``, ``c="*a"``.

        A star makes a step wait for any end.
        """
        return self.client.start_workflow(steps(Workflow("order"), parents))

    def append(self, started: StartedWorkflow, **parents: str) -> dict[str, UUID]:
        """Append steps, written as for ``start``."""
        return self.client.append_steps(started.id, steps(Steps(), parents))

    def claim(self, job_id: UUID) -> ClaimedJob:
        """Claim due work of the queue until this job is leased; the others go back at the end."""
        (claimed,) = [one for one in self.store.claim("work", 1_000) if one.id == job_id]
        return claimed

    def states(self, jobs: Mapping[str, UUID]) -> dict[str, JobState]:
        """The state of every step."""
        return {step: self.store.state(job_id) for step, job_id in jobs.items()}

    def end(self, job_id: UUID, state: JobState = S.SUCCEEDED, output: str | None = None) -> None:
        """End a job: a Scheduled one is leased first, alone or along with its siblings."""
        if self.store.state(job_id) is S.SCHEDULED:
            self.claim(job_id)
        self.store.end(job_id, state, output=output)


def steps(into: T, parents: Mapping[str, str]) -> T:
    """Steps as ``Flow.start`` writes them."""
    for number, (step, text) in enumerate(parents.items()):
        names = text.replace("*", "").split()
        mode = {"mode": ON_ANY_TERMINAL} if "*" in text else {}
        into.add(step, call(number), after=names, **mode)
    return into
