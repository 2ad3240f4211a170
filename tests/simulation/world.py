"""A world: one database in memory, some nodes, operators and faults, in one thread and no time."""

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Connection, exists, func, select

from latchwork.clock import SystemClock
from latchwork.decisions.retention import Retention
from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.errors import (
    DuplicateJob,
    LatchworkError,
    StoreError,
    StoreUnavailable,
    UnknownParent,
)
from latchwork.store import (
    counter_folding,
    purging,
    schema,
)
from latchwork.store.enqueueing import NewJob, insert_jobs
from latchwork.store.service_tables import deliveries, observers
from latchwork.store.workflow_rows import insert_workflow
from tests.audit import CHECKS, read_tables
from tests.simulation.databases import empty_database
from tests.simulation.dispatcher import SCOPE
from tests.simulation.node import VirtualNode
from tests.simulation.operators import Operators
from tests.simulation.oracles.at_rest import ORACLES, edges_taken
from tests.simulation.oracles.observed import Observed
from tests.simulation.oracles.running import Oracles
from tests.simulation.plan import ACTIONS_UNTIL, FAULTS_UNTIL, QUEUES, Plan, Step

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
REST_WITHIN = 600.0
"""Seconds in which a healed world must come to rest."""
WRONG_SECONDS = 600.0
WAY_SECONDS, SLOW_WAY_SECONDS = 0.05, 5.0
LOOK_SECONDS, FOLD_SECONDS = 2.0, 7.0
_LIVE = select(schema.jobs.c.payload, schema.jobs.c.state).where(
    schema.jobs.c.terminal_at.is_(None)
)
_BEHIND = select(
    exists().where(deliveries.c.observer == SCOPE.name)
    | exists().where(
        observers.c.name == SCOPE.name,
        observers.c.passed_position
        < select(func.max(schema.transitions.c.position)).scalar_subquery(),
    )
)
_STORED = select(schema.jobs.c.id, schema.jobs.c.state)
RETENTION = Retention(done=timedelta(seconds=2), failed=timedelta(seconds=4))


@dataclass(frozen=True)
class Verdict:
    """What came of a world."""

    findings: tuple[str, ...]
    fingerprint: str
    reached: Counter[str]
    steps: int


class WorldClock(SystemClock):
    """The store's clock: it follows the world's time and is stepped by faults."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self._world = world

    def now(self) -> datetime:
        """The store's time."""
        return self._world.now()

    def monotonic(self) -> float:
        """Seconds since the world began."""
        return self._world.at


class World:
    """Everything that happens in one simulated world."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.at = 0.0
        self.reached: Counter[str] = Counter()
        self.database = empty_database()
        self.database.clock = WorldClock(self)
        self.oracles = Oracles(self)
        self.observed = Observed(self)
        self._clock_step = 0.0
        self._furthest_step = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._steps = 0
        self._outage_until = 0.0
        # Since when nothing hinders the nodes, and each of them.
        self._calm_since = 0.0
        self._node_calm_since: dict[str, float] = {}
        self.healed = False
        self._behaviours: dict[UUID, str] = {}
        self._members: dict[UUID, list[UUID]] = {}
        clocks = self.chance("clocks")
        far = WRONG_SECONDS if plan.own_clocks else 0.0
        self._wrong_by = [round(clocks.uniform(-far, far), 3) for _ in range(plan.nodes)]
        self._nodes = [VirtualNode(self, number, 0) for number in range(plan.nodes)]
        self._lives = [0] * plan.nodes
        self._calls = self.chance("calls")
        self._operators = Operators(self)

    def run(self) -> Verdict:
        """Let the plan happen, heal the world, and see it come to rest."""
        for step in self.plan.steps:
            self.later(step.at, lambda step=step: self._do(step))  # type: ignore[misc]
        self.later(FAULTS_UNTIL, self._heal)
        self.later(FOLD_SECONDS, self._fold)
        try:
            self._until(FAULTS_UNTIL + 0.001)
            self._audit("when the faults were over")
            while self.at < ACTIONS_UNTIL or self._unfinished():
                if self.at > FAULTS_UNTIL + REST_WITHIN:
                    self.oracles.found("stuck: " + ", ".join(self._unfinished()))
                    break
                self._until(self.at + LOOK_SECONDS)
            self._audit("at rest")
            self._audit_observer()
        except AssertionError as broken:
            self.oracles.found(f"broke: {broken}")
        return Verdict(tuple(self.oracles.findings), self._fingerprint(), self.reached, self._steps)

    # Time.

    def now(self) -> datetime:
        """The time of the store's clock."""
        return START + timedelta(seconds=round(self.at + self._clock_step, 6))

    def wrong_by(self, node: int) -> timedelta:
        """How far a node's own clock is from the store's."""
        return timedelta(seconds=self._wrong_by[node])

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something later."""
        self._number += 1
        heapq.heappush(self._agenda, (self.at + seconds, self._number, act))

    def chance(self, name: str) -> Random:
        """Chance of its own for everything that has a name."""
        return Random(f"{self.plan.seed} {name}")  # noqa: S311

    def note(self, reached: str) -> None:
        """Something was reached that the coverage report counts."""
        self.reached[reached] += 1

    def _until(self, until: float) -> None:
        while self._agenda and self._agenda[0][0] <= until:
            self.at, _, act = heapq.heappop(self._agenda)
            self._steps += 1
            act()
            if self.oracles.findings:
                raise AssertionError("an oracle spoke")
        self.at = until

    def calm_for(self, worker_id: str) -> float:
        """How long nothing has kept a node from its leases; negative while something does."""
        if (self.plan.lost_answers or self.plan.slow_ways) and not self.healed:
            return -1.0
        return self.at - max(self._calm_since, self._node_calm_since.get(worker_id, 0.0))

    # The store, and what keeps it from answering.

    def way_seconds(self, chance: Random) -> float:
        """How long a question to the store, or its answer, is under way: seldom very long."""
        seldom = not self.healed and chance.random() < self.plan.slow_ways
        return chance.uniform(0, SLOW_WAY_SECONDS if seldom else WAY_SECONDS)

    def ask(self, work: Callable[[Connection], T], chance: Random) -> T | Exception:
        """One transaction; an outage, or a lost answer after it was carried out, is an error."""
        lost = StoreUnavailable("the connection was cut")
        if not self.healed:
            if self.at < self._outage_until:
                self.note("no answer: outage")
                return lost
            if chance.random() < self.plan.lost_answers / 2:
                self.note("no answer: before the commit")
                return lost
        try:
            answer = self.database.write(work)
        except LatchworkError as error:
            if type(error) is StoreError:
                self.oracles.found(f"the store refused: {error}")
            return error
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001
            self.oracles.found(f"raw error left the store: {type(error).__name__}: {error}")
            return error
        if not self.healed and chance.random() < self.plan.lost_answers / 2:
            self.note("no answer: after the commit")
            return lost
        return answer

    # The plan's steps.

    def _do(self, step: Step) -> None:
        self.note(f"step: {step.kind}")
        values = step.values
        match step.kind:
            case "enqueue":
                self._enqueue(values["jobs"], None)
            case "workflow":
                self._enqueue(values["jobs"], self.workflow_id(values["workflow"]))
            case "crash" | "freeze" | "stop":
                self._trouble(step.kind, **values)
            case "outage":
                self._outage_until = self.at + values["seconds"]
                self._calm_since = max(self._calm_since, self._outage_until)
            case "step clock":
                self._step_clock(**values)
            case "purge":
                self._purge()
            case _:
                self._operators.press(step.kind, values)

    def _enqueue(self, specs: list[dict[str, Any]], workflow_id: UUID | None) -> None:
        new = [self._new_job(spec, workflow_id) for spec in specs]
        if workflow_id is not None:
            self._members[workflow_id] = [job.id for job in new]

        def insert(connection: Connection) -> None:
            if workflow_id is not None:
                insert_workflow(connection, workflow_id, name="w", now=self.now())
            insert_jobs(connection, new, now=self.now())

        answer = self.ask(insert, self._calls)
        for _ in range(20):  # the client asks again under the same ids
            if not isinstance(answer, StoreUnavailable):
                break
            answer = self.ask(insert, self._calls)
        if answer is None or isinstance(answer, DuplicateJob):
            self.oracles.enqueued([job.id for job in new])
            for queue in sorted({job.queue for job in new}):
                self._hint(queue)
        elif isinstance(answer, UnknownParent):
            self.note("enqueue: unknown parent")
        elif not isinstance(answer, StoreUnavailable):
            self.oracles.found(f"enqueue answered {answer!r}")

    def _new_job(self, spec: dict[str, Any], workflow_id: UUID | None) -> NewJob:
        job_id = self.job_id(spec["number"])
        self._behaviours[job_id] = spec["behaviour"]
        mode = DependencyMode.ON_ANY_TERMINAL if spec["any_terminal"] else DependencyMode.ON_SUCCESS
        policy = RetryPolicy(max_attempts=spec["max_attempts"], base_seconds=spec["base_seconds"])
        return NewJob(
            id=job_id, wire_name="known", queue=spec["queue"], payload=str(spec["number"]),
            retry=policy, due_at=self.now() + timedelta(seconds=spec["due_in"]),
            parents=tuple(self.job_id(number) for number in spec["parents"]), mode=mode,
            workflow_id=workflow_id, step=None if workflow_id is None else str(spec["number"]),
        )  # fmt: skip

    def _hint(self, queue: str) -> None:
        for node in self._nodes:
            for _ in range(self._calls.choice((0, 1, 1, 2))):  # lost, or told twice
                node.hint(queue)

    def _trouble(self, kind: str, node: int, seconds: float) -> None:
        number = node % self.plan.nodes
        life = self._nodes[number]
        if kind == "freeze":
            life.frozen_until = max(life.frozen_until, self.at + seconds)
            before = self._node_calm_since.get(life.worker_id, 0.0)
            self._node_calm_since[life.worker_id] = max(before, life.frozen_until)
            return
        self._node_calm_since[life.worker_id] = float("inf")
        if kind == "stop" and life.alive:
            life.later(0, life.stop)
        else:
            life.alive = False
        self.later(seconds + 5.0 * (kind == "stop"), lambda: self._replace(life, number))

    def _replace(self, life: VirtualNode, number: int) -> None:
        if self._nodes[number] is life:
            life.alive = False
            self._restart(number)

    def _restart(self, number: int) -> None:
        self._lives[number] += 1
        self._nodes[number] = VirtualNode(self, number, self._lives[number])

    def _step_clock(self, seconds: float, node: int) -> None:
        if self.plan.own_clocks:
            self._wrong_by[node % self.plan.nodes] += seconds
            return
        self._clock_step += seconds
        self._furthest_step = max(self._furthest_step, self._clock_step)
        self._calm_since = max(self._calm_since, self.at)
        self.oracles.clock_stepped()

    def _purge(self) -> None:
        now, before = self.now(), self._stored()
        try:
            groups = self.database.read(purging.find, RETENTION, now=now).groups
            purged = self.database.write(purging.purge, groups, RETENTION, now=now)
        except LatchworkError as error:
            self.oracles.found(f"a purge answered {error!r}")
        else:
            self.note("purged" if purged else "purged nothing")
            self.oracles.purged(before, self._stored())

    def _stored(self) -> dict[UUID, JobState]:
        def read(connection: Connection) -> dict[UUID, JobState]:
            return {row.id: row.state for row in connection.execute(_STORED)}

        return self.database.read(read)

    def _fold(self) -> None:
        self.database.write(counter_folding.fold, now=self.now())
        self.later(FOLD_SECONDS, self._fold)

    def _heal(self) -> None:
        self.healed = True
        # The clock is put right: what was due by it at its furthest is due soon.
        self._clock_step = self._furthest_step
        # What is under way may still take its time.
        under_way = 2 * SLOW_WAY_SECONDS if self.plan.slow_ways else 0.0
        self._calm_since = max(self._calm_since, self.at + under_way)
        self.oracles.clock_stepped()
        for number, node in enumerate(self._nodes):
            node.frozen_until = min(node.frozen_until, self.at)
            if not node.alive:
                self._restart(number)
        for queue in QUEUES:
            self._operators.press("resume", {"queue": queue})
            self._operators.press("limit", {"queue": queue, "limit": None})

    # The end.

    def job_id(self, number: int) -> UUID:
        """The id of the plan's job of this number."""
        return UUID(int=(self.plan.seed << 32) + number + 1)

    def workflow_id(self, number: int) -> UUID:
        """The id of the plan's workflow of this number."""
        return UUID(int=(1 << 100) + (self.plan.seed << 32) + number)

    def members_of(self, workflow_id: UUID) -> list[UUID]:
        """The jobs of a workflow, whether its enqueue was answered or not."""
        return self._members.get(workflow_id, [])

    def behaviour(self, job_id: UUID) -> str:
        """How the job's handler behaves."""
        return self._behaviours[job_id]

    def _unfinished(self) -> list[str]:
        """What is still to be done, a sentence each."""

        def look(connection: Connection) -> list[str]:
            live = [f"job {row.payload} is {row.state}" for row in connection.execute(_LIVE)]
            behind = connection.scalar(_BEHIND) if self.plan.observed and not live else None
            return [*live, "the observer is behind"] if behind else live

        return self.database.read(look)

    def _audit(self, when: str) -> None:
        def look(connection: Connection) -> list[str]:
            tables = read_tables(connection)
            self.reached.update(edges_taken(tables))
            rules = [sentence for check in CHECKS for sentence in check(tables)]
            return [*rules, *(said for one in ORACLES for said in one(tables, self.oracles))]

        for sentence in self.database.read(look):
            self.oracles.found(f"{when}: {sentence}")

    def _audit_observer(self) -> None:
        if self.plan.observed:
            for sentence in self.observed.missed(self.database.read(read_tables)):
                self.oracles.found(sentence)

    def _fingerprint(self) -> str:
        def read(connection: Connection) -> str:
            digest = hashlib.sha256()
            for table in (schema.transitions, schema.jobs, schema.edges, schema.audit):
                for row in connection.execute(select(table).order_by(*table.primary_key.columns)):
                    digest.update(repr(row).encode())
            return digest.hexdigest()

        return self.database.read(read)
