"""Virtual time: the real jobs of an application, in one thread, and no time of ours."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from latchwork import JobContext, JobState, Latchwork, RetryPolicy, Workflow
from latchwork.errors import InvalidValue
from latchwork.store.engines import reading
from latchwork.testing import NeverIdle, VirtualTime
from latchwork.testing.virtual_time import START
from latchwork.views import JobFilter, TransitionView
from tests.audit import audit

NOWHERE = "sqlite:////nowhere/at/all.db"
"""An application's own database is never opened."""


class World:
    """An application that notes what its handlers did when."""

    def __init__(self) -> None:
        self.app = Latchwork(NOWHERE)
        self.runs: list[tuple[str, int, float]] = []

    def note(self, context: JobContext) -> None:
        seconds = (self.app.database.now() - START).total_seconds()
        self.runs.append((context.wire_name, context.attempt, seconds))

    def states(self) -> list[JobState]:
        return [job.state for job in self.app.monitor.jobs(limit=200).jobs]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def app(world: World) -> Latchwork:
    return world.app


@pytest.fixture(autouse=True)
def _audited(app: Latchwork, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each database in memory is audited before it is gone."""
    leave = VirtualTime.__exit__

    def audit_and_leave(time: VirtualTime, *given: Any) -> None:
        with reading(app.engine) as connection:
            violations = audit(connection)
        leave(time, *given)
        assert not violations, "\n".join(violations)

    monkeypatch.setattr(VirtualTime, "__exit__", audit_and_leave)


def test_a_job_runs_when_it_is_due_and_not_before(world: World, app: Latchwork) -> None:
    job = app.job("remind")(world.note)
    with VirtualTime(app) as time:
        job_id = app.client.enqueue(job.bind(), due_at=time.now + timedelta(days=3))
        time.advance(days=3, microseconds=-1)
        assert world.runs == []
        time.advance(microseconds=1)
        assert world.runs == [("remind", 1, 3 * 86_400)]
        assert app.monitor.history(job_id).transitions[-1].state is JobState.SUCCEEDED
        assert time.now == START + timedelta(days=3)


def test_retries_follow_their_policy_in_virtual_time(world: World, app: Latchwork) -> None:
    @app.job(
        "flaky", retry=RetryPolicy(max_attempts=4, base_seconds=100, factor=2, cap_seconds=500)
    )
    def flaky(context: JobContext) -> None:
        world.note(context)
        raise ValueError("not yet")

    with VirtualTime(app) as time:
        app.client.enqueue(flaky.bind())
        time.run_until_idle()
        assert time.now == START
        time.advance(days=1)
        assert [run[1:] for run in world.runs] == [(1, 0), (2, 100), (3, 300), (4, 700)]
        assert world.states() == [JobState.DEAD_LETTERED]
        (group,) = app.monitor.failures().groups
        assert group.wire_name == "flaky"


def test_an_async_handler_sleeps_virtually_and_keeps_its_lease(
    world: World, app: Latchwork
) -> None:
    @app.job("slow")
    async def slow(context: JobContext) -> None:
        await asyncio.sleep(3600)
        await asyncio.to_thread(world.note, context)

    with VirtualTime(app) as time:
        app.client.enqueue_many([slow.bind(), slow.bind()])
        time.run_until_idle()
        assert [round(run[2], 3) for run in world.runs] == [3600, 3600]
        assert world.states() == [JobState.SUCCEEDED] * 2


def test_a_time_limit_and_a_cancel_reach_a_handler(world: World, app: Latchwork) -> None:
    @app.job("limited", timeout_seconds=90, retry=RetryPolicy(max_attempts=1))
    async def limited(context: JobContext) -> None:
        await context.cancellation.wait()
        world.note(context)
        context.cancellation.raise_if_requested()

    @app.job("endless")
    async def endless(context: JobContext) -> None:
        await asyncio.sleep(10**6)

    with VirtualTime(app) as time:
        first, second = app.client.enqueue(limited.bind()), app.client.enqueue(endless.bind())
        time.advance(seconds=30)
        app.operator.cancel(second, actor="ann")
        time.advance(minutes=2)
        states = [app.monitor.job(one).state for one in (first, second)]  # type: ignore[union-attr]
        assert states == [JobState.DEAD_LETTERED, JobState.CANCELLED]


@pytest.mark.parametrize("minutes", [10, 0.5])
def test_a_handler_takes_as_long_as_it_says(world: World, app: Latchwork, minutes: float) -> None:
    time = VirtualTime(app)

    @app.job("work")
    def work(context: JobContext) -> None:
        time.advance(minutes=minutes)
        world.note(context)

    with time:
        app.client.enqueue(work.bind())
        time.run_until_idle()
        assert world.runs == [("work", 1, minutes * 60)]
        assert world.states() == [JobState.SUCCEEDED]


def test_a_frozen_nodes_outcome_is_refused_and_the_job_runs_again(
    world: World, app: Latchwork
) -> None:
    time = VirtualTime(app)

    @app.job("work")
    def work(context: JobContext) -> None:
        if context.attempt == 1:
            time.freeze(minutes=5)
        context.set_output(context.attempt)

    with time:
        job_id = app.client.enqueue(work.bind())
        time.advance(minutes=10)
        history = [row.state for row in app.monitor.history(job_id).transitions]
        assert [state.value for state in history] == [
            "scheduled", "leased", "scheduled", "leased", "succeeded",
        ]  # fmt: skip
        assert app.monitor.output(job_id).output == "2"


@pytest.mark.parametrize("is_async", [True, False])
def test_a_crash_loses_the_outcome_and_the_job_runs_again_after_its_lease(
    world: World, app: Latchwork, *, is_async: bool
) -> None:
    time = VirtualTime(app, lease_seconds=60)

    def die(context: JobContext) -> None:
        world.note(context)
        if context.attempt == 1:
            time.crash()

    async def die_async(context: JobContext) -> None:
        die(context)

    job: Any = app.job("fragile")(die_async if is_async else die)
    with time:
        app.client.enqueue(job.bind())
        time.run_until_idle()
        assert world.states() == [JobState.LEASED]
        time.advance(minutes=5)
        assert [run[1:] for run in world.runs] == [(1, 0), (2, 62)]
        assert world.states() == [JobState.SUCCEEDED]


def test_a_node_killed_from_outside_takes_its_sleeping_handlers_along(
    world: World, app: Latchwork
) -> None:
    @app.job("sleeper")
    async def sleeper(context: JobContext) -> None:
        await asyncio.sleep(30)
        world.note(context)

    with VirtualTime(app) as time:
        app.client.enqueue(sleeper.bind())
        time.advance(seconds=10)
        time.crash()
        time.advance(minutes=5)
        assert [run[1] for run in world.runs] == [2]


def test_workflows_and_what_handlers_enqueue_run_in_order(world: World, app: Latchwork) -> None:
    follow = app.job("follow")(world.note)

    @app.job("pick")
    def pick(context: JobContext) -> None:
        world.note(context)
        context.set_output(42)
        app.client.enqueue(follow.bind(), due_at=app.database.now() + timedelta(hours=1))

    @app.job("pack")
    async def pack(context: JobContext) -> None:
        assert (await context.dependency_output_async("pick")).output == 42
        world.note(context)

    with VirtualTime(app) as time:
        workflow = (
            Workflow("order").add("pick", pick.bind()).add("pack", pack.bind(), after=["pick"])
        )
        app.client.start_workflow(workflow)
        time.run_until_idle()
        assert [run[0] for run in world.runs] == ["pick", "pack"]
        time.advance(hours=1)
        assert world.runs[-1] == ("follow", 1, 3600)


def test_observers_are_called_and_tried_again_in_virtual_time(world: World, app: Latchwork) -> None:
    job = app.job("work")(world.note)
    heard: list[datetime] = []

    @app.observer("listener", states=[JobState.SUCCEEDED])
    async def listener(transition: TransitionView, context: Any) -> None:
        heard.append(app.database.now())
        if len(heard) < 3:
            raise ValueError("again")

    with VirtualTime(app) as time:
        app.client.enqueue(job.bind())
        time.run_until_idle()
        assert len(heard) == 1
        time.advance(hours=1)
        assert len(heard) == 3
        observer = app.monitor.observer("listener")
        assert observer is not None
        assert observer.delivered == 1


@pytest.mark.parametrize(("zone", "year"), [("Europe/Berlin", 2027), ("America/New_York", 2028)])
def test_a_year_of_a_nightly_schedule_runs_once_a_night(
    world: World, app: Latchwork, zone: str, year: int
) -> None:
    nightly = app.job("nightly")(world.note)
    app.schedule("nightly", nightly.bind(), cron="30 2 * * *", zone=zone)
    start = datetime(year, 1, 1, tzinfo=UTC)
    with VirtualTime(app, start=start) as time:
        time.advance_to(datetime(year + 1, 1, 1, tzinfo=UTC))
        assert len(world.runs) == (366 if year == 2028 else 365)
        (view,) = app.monitor.schedules()
        assert view.last_tick is not None


def test_operations_on_many_jobs_are_worked_off(world: World, app: Latchwork) -> None:
    job = app.job("work")(world.note)
    with VirtualTime(app) as time:
        later = time.now + timedelta(days=1)
        app.client.enqueue_many([job.bind()] * 3, due_at=later)
        operation = app.operator.cancel_matching(JobFilter(wire_name="work"), actor="ann")
        time.run_until_idle()
        found = app.monitor.bulk_operation(operation.id)
        assert found is not None
        assert found.done == 3
        assert world.states() == [JobState.CANCELLED] * 3


def test_the_same_test_gives_the_same_log(world: World, app: Latchwork) -> None:
    def log() -> list[tuple[Any, ...]]:
        tries: list[int] = []

        @app.job(f"job-{len(app.job_types)}", retry=RetryPolicy(max_attempts=3))
        async def job(context: JobContext) -> None:
            await asyncio.sleep(7)
            tries.append(context.attempt)
            if context.attempt < 3:
                raise ValueError("again")

        with VirtualTime(app) as time:
            app.client.enqueue_many([job.bind()] * 5)
            time.advance(hours=1)
            rows = app.monitor.transitions(limit=200).transitions
            return [(row.at, row.position, row.ordinal, row.state, row.attempt) for row in rows]

    assert log() == log()


def test_the_application_has_its_own_database_and_clock_again(app: Latchwork) -> None:
    engine, clock = app.engine, app.database.clock
    with VirtualTime(app):
        assert app.engine is not engine
    assert app.engine is engine
    assert app.database.clock is clock


def test_no_thread_of_a_node_is_started(world: World, app: Latchwork) -> None:
    before = threading.active_count()
    job = app.job("work")(world.note)
    with VirtualTime(app) as time:
        app.client.enqueue(job.bind())
        time.advance(days=1)
        assert threading.active_count() == before


def test_a_handler_that_never_ends_is_named(app: Latchwork) -> None:
    @app.job("stuck")
    async def stuck(context: JobContext) -> None:
        await context.cancellation.wait()

    with VirtualTime(app) as time:
        app.client.enqueue(stuck.bind())
        with pytest.raises(NeverIdle):
            time.run_until_idle(timedelta(minutes=10))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda app: VirtualTime(app, start=datetime(2026, 1, 1)),  # noqa: DTZ001
        lambda app: VirtualTime(app, slots=0),
    ],
)
def test_what_is_out_of_range_is_refused(
    app: Latchwork, wrong: Callable[[Latchwork], VirtualTime]
) -> None:
    with pytest.raises(InvalidValue):
        wrong(app)


def test_time_does_not_go_back(app: Latchwork) -> None:
    with VirtualTime(app) as time, pytest.raises(InvalidValue):
        time.advance(seconds=-1)
