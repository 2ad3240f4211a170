"""``Latchwork``: the one object a user makes. Everything else hangs off it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Engine

from latchwork.client import AsyncClient, Client
from latchwork.context import JobContext
from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.jobs import JobCall, JobType
from latchwork.maintenance.bulk_runner import BulkRunner
from latchwork.maintenance.counter_folder import CounterFolder
from latchwork.maintenance.expiry_sweeper import ExpirySweeper
from latchwork.maintenance.failure_grouper import FailureGrouper
from latchwork.maintenance.observer_dispatcher import ObserverDispatcher
from latchwork.maintenance.purger import Purger
from latchwork.maintenance.schedule_minter import ScheduleMinter
from latchwork.maintenance.service import ServiceThread
from latchwork.monitor import Monitor
from latchwork.observer_views import Start
from latchwork.observers import ObserverRegistry, OnTransition, checked_scope
from latchwork.operations import Operator
from latchwork.schedule_client import make_schedule
from latchwork.schedules import Schedule
from latchwork.settings import Settings
from latchwork.store.database import Database
from latchwork.values import checked_name
from latchwork.views import Tag
from latchwork.worker.execution import AttemptScope
from latchwork.worker.groups import run_together
from latchwork.worker.worker import Worker, WorkerOptions

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_QUEUE = "default"
DEFAULT_RETRY = RetryPolicy()
MAX_SLOTS = 10_000
MAX_WEIGHT = 1_000
MAX_SECONDS = 1_000_000
BEATS_PER_LEASE = 3
"""A lease outlives two heartbeats that got lost (contract section 4)."""


class Latchwork:
    """Jobs in one database: their types, and how they are put in, run, watched and acted on.

    Args:
        database_url: ``sqlite:///FILE``, ``sqlite://`` (in memory) or ``postgresql://...``; the
            database is not opened before it is needed.
        settings: how this process uses the database; read from the environment if left out.
        attempt_scope: opens what each attempt needs, such as a database session: a function of the
            job's context that returns an async or plain context manager. What that yields is
            ``context.scope``.

    Raises:
        InvalidValue: the address is none of a supported database.
    """

    def __init__(
        self,
        database_url: str,
        *,
        settings: Settings | None = None,
        attempt_scope: AttemptScope | None = None,
    ) -> None:
        self.database = Database(database_url, settings)
        self.client = Client(self.database)
        """Puts work in."""
        self.async_client = AsyncClient(self.client)
        """The client's awaitable twin."""
        self.monitor = Monitor(self.database)
        """Reads everything there is to see."""
        self.operator = Operator(self.database)
        """Acts on jobs: cancel, requeue."""
        self.job_types: dict[str, JobType[..., Any]] = {}
        """The registered job types by wire name."""
        self.observers = ObserverRegistry()
        """The registered transition observers."""
        self.schedules: dict[str, Schedule] = {}
        """The registered schedules by id."""
        self.attempt_scope = attempt_scope
        """Opens what each attempt needs, if given."""

    @property
    def engine(self) -> Engine:
        """The SQLAlchemy engine, for enqueueing in your own transaction."""
        return self.database.engine

    def job(
        self,
        wire_name: str,
        *,
        queue: str = DEFAULT_QUEUE,
        retry: RetryPolicy = DEFAULT_RETRY,
        tags: Iterable[Tag] = (),
        interrupt: bool = True,
        timeout_seconds: float | None = None,
    ) -> "Callable[[Callable[Concatenate[JobContext, P], R]], JobType[P, R]]":
        """Register the decorated function as the handler of ``wire_name``.

        The function takes the job's context first; its other parameters are the payload. The
        arguments are those of ``JobType``.

        Raises:
            InvalidValue: a name or tag is malformed, the name is taken, or the function cannot be
                a handler.
        """

        def register(function: Callable[Concatenate[JobContext, P], R]) -> JobType[P, R]:
            job_type = JobType(
                function,
                wire_name=wire_name,
                queue=queue,
                retry=retry,
                tags=tags,
                interrupt=interrupt,
                timeout_seconds=timeout_seconds,
            )
            if wire_name in self.job_types:
                raise InvalidValue("wire_name", f"{wire_name} is registered twice")
            self.job_types[wire_name] = job_type
            return job_type

        return register

    def observer(
        self,
        name: str,
        *,
        states: Iterable[JobState | str],
        wire_name: str | None = None,
        queue: str | None = None,
        start: Start = "end",
    ) -> Callable[[OnTransition], OnTransition]:
        """Register the decorated function as an observer: it is called for transitions.

        The function, ``async`` or plain, takes the transition and an ``ObserverContext``. Every
        node of the application offers to call it, one of them does: at least once for each row,
        in the order of its job's rows, again with back-off when it raises (contract section 7).
        The database knows the observer from the first start of a node on.

        Args:
            name: what the database knows it by, for ever.
            states: it is called when a job reaches one of these.
            wire_name: only for jobs of this type; all if left out.
            queue: only for jobs of this queue; all if left out.
            start: where a new observer begins: at the log's "end", or at its "beginning".

        Raises:
            InvalidValue: an argument is malformed, or the name is taken.
        """
        scope = checked_scope(name, states, wire_name=wire_name, queue=queue, start=start)

        def register(on_transition: OnTransition) -> OnTransition:
            self.observers.add(scope, on_transition)
            return on_transition

        return register

    def schedule(self, schedule_id: str, call: JobCall, **options: Any) -> Schedule:
        """Register a schedule: every node of the application sets it when it starts.

        The arguments are those of ``client.set_schedule``, and so are its errors. One that is no
        longer registered goes on until ``client.remove_schedule``.

        Raises:
            InvalidSchedule: an expression, zone or policy is no good.
            InvalidValue: another argument is malformed, or the id is taken.
        """
        schedule = make_schedule(schedule_id, call, **options)
        if schedule_id in self.schedules:
            raise InvalidValue("schedule_id", f"{schedule_id} is registered twice")
        self.schedules[schedule_id] = schedule
        return schedule

    def worker(
        self,
        *,
        queues: Sequence[str] | Mapping[str, int] | None = None,
        slots: int = 20,
        lease_seconds: float = 60,
        heartbeat_seconds: float | None = None,
        poll_seconds: float = 1,
        sweep_seconds: float = 1,
        grace_seconds: float = 30,
    ) -> Worker:
        """A worker node for the registered job types; ``run()`` or ``await serve()`` starts it.

        Args:
            queues: served in this order, or by weight if they map to weights. Left out: those of
                the registered job types and "default", with equal weights.
            slots: how many jobs run at once.
            lease_seconds: how long a claimed job is ours without a heartbeat.
            heartbeat_seconds: how often leases are renewed; a third of the lease if left out, and
                never more.
            poll_seconds: how often an idle node looks for due work nobody has hinted at.
            sweep_seconds: how often leases that have lapsed, on any node, are looked for.
            grace_seconds: how long running jobs may go on after the node was told to stop.

        Raises:
            InvalidValue: an argument is out of its range.
        """
        _check_whole("slots", slots, MAX_SLOTS)
        _check_seconds("lease_seconds", lease_seconds, lowest=0.1)
        if heartbeat_seconds is None:
            heartbeat_seconds = lease_seconds / BEATS_PER_LEASE
        _check_seconds("heartbeat_seconds", heartbeat_seconds, lowest=0.01)
        if heartbeat_seconds * BEATS_PER_LEASE > lease_seconds * 1.000001:
            raise InvalidValue("heartbeat_seconds", "must be at most a third of lease_seconds")
        _check_seconds("poll_seconds", poll_seconds, lowest=0.01)
        _check_seconds("sweep_seconds", sweep_seconds, lowest=0.01)
        _check_seconds("grace_seconds", grace_seconds, lowest=0)
        served = self._served_queues(queues)
        dispatcher = ObserverDispatcher(self.database, self.observers)
        return Worker(
            self.database,
            self.job_types,
            WorkerOptions(
                queues=tuple(served),
                weights=served if isinstance(served, Mapping) else None,
                slots=slots,
                lease_seconds=lease_seconds,
                heartbeat_seconds=heartbeat_seconds,
                poll_seconds=poll_seconds,
                grace_seconds=grace_seconds,
            ),
            attempt_scope=self.attempt_scope,
            companions=[
                ServiceThread(ExpirySweeper(self.database, sweep_seconds)),
                ServiceThread(CounterFolder(self.database)),
                ServiceThread(Purger(self.database)),
                ServiceThread(ScheduleMinter(self.database)),
                dispatcher,
                *self.upkeep(),
            ],
            introduce=self.introduce,
        )

    def introduce(self) -> None:
        """Make the registered observers and schedules known to the database, as each node does.

        Raises HistoryOff when there are observers and nothing is logged.
        """
        ObserverDispatcher(self.database, self.observers).register()
        for schedule in self.schedules.values():
            self.client.store_schedule(schedule)

    def upkeep(self) -> tuple[ServiceThread, ...]:
        """What must go on also where no node runs, ready to be started beside a console.

        They work off operations on many jobs and sort failures into groups; any number of
        processes may run them.
        """
        services = (BulkRunner(self.database), FailureGrouper(self.database))
        return tuple(ServiceThread(service) for service in services)

    def run(self, *workers: Worker) -> None:
        """Run several workers in this process, each with its own queues and slots.

        Work until SIGTERM or SIGINT, then drain them all, as ``Worker.run`` does for one. When one
        fails the others drain, and what it raised is raised here.
        """
        run_together(workers)

    def _served_queues(
        self, queues: Sequence[str] | Mapping[str, int] | None
    ) -> Sequence[str] | Mapping[str, int]:
        if queues is None:
            names = {job_type.queue for job_type in self.job_types.values()} | {DEFAULT_QUEUE}
            return dict.fromkeys(sorted(names), 1)
        if isinstance(queues, str) or not queues:
            raise InvalidValue("queues", "must name at least one queue, in a list or a mapping")
        for name in queues:
            checked_name("queue", name)
        if isinstance(queues, Mapping):
            for name, weight in queues.items():
                _check_whole(f"weight of {name}", weight, MAX_WEIGHT)
            return dict(queues)
        return tuple(dict.fromkeys(queues))


def _check_whole(name: str, value: object, highest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= highest:
        raise InvalidValue(name, f"must be a whole number from 1 to {highest:,}")


def _check_seconds(name: str, value: object, *, lowest: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidValue(name, "must be a number of seconds")
    if not lowest <= value <= MAX_SECONDS:
        raise InvalidValue(name, f"must be from {lowest:g} to {MAX_SECONDS:,} seconds")
