"""Schedules on each database: minted once per tick, caught up, skipped in sight, triggered."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from latchwork.application import Latchwork
from latchwork.context import JobContext
from latchwork.decisions.recurrence import CatchUp, due_ticks
from latchwork.decisions.states import JobState
from latchwork.errors import InvalidSchedule, InvalidValue, ValueTooLarge
from latchwork.jobs import JobType
from latchwork.maintenance.schedule_minter import ScheduleMinter
from latchwork.schedule_views import SetOutcome, Tick, TickOutcome, TriggerOutcome
from latchwork.store import schedules, service_tables
from latchwork.store.database import Database
from latchwork.store.schema import jobs
from latchwork.store.service_tables import schedule_ticks
from tests.clocks import SetClock
from tests.store.builders import Store

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOURLY = "0 * * * *"
T = TickOutcome


class Shop:
    """An application with one job type, a minter, and the time in the test's hand."""

    def __init__(self, app: Latchwork) -> None:
        self.app = app
        app.database.prepare()
        self.now = START
        app.database.clock = SetClock(lambda: self.now)
        self.minter = ScheduleMinter(app.database)
        self.backup: JobType[..., Any] = app.job("backup", queue="nights", tags=["night"])(backup)

    def set(self, schedule_id: str = "nightly", **given: Any) -> SetOutcome:
        options = {"cron": HOURLY} | given
        return self.app.client.set_schedule(schedule_id, self.backup.bind(), **options)

    def wait(self, **parts: float) -> list[Tick]:
        """Let time pass, mint, and return the ticks decided then, oldest first."""
        before = {tick.at for tick in self.ticks()}
        self.now += timedelta(**parts)
        while self.minter.run_once():
            pass
        return [tick for tick in self.ticks() if tick.at not in before]

    def ticks(self, schedule_id: str = "nightly") -> list[Tick]:
        return list(reversed(self.app.monitor.schedule_ticks(schedule_id, limit=200)))

    def end_all(self) -> None:
        store = Store(self.app.database, now=self.now)
        for job in self.app.monitor.jobs().jobs:
            if job.state is JobState.SCHEDULED:
                store.end(job.id)

    def jobs(self) -> int:
        count = select(func.count()).select_from(jobs)
        return self.app.database.read(lambda connection: connection.scalar(count) or 0)


def backup(context: JobContext) -> None:
    """Nothing to do: only the rows matter here."""


@pytest.fixture
def shop(app: Latchwork) -> Shop:
    return Shop(app)


def outcomes(ticks: list[Tick]) -> list[tuple[TickOutcome, int]]:
    return [(tick.outcome, tick.count.value) for tick in ticks]


def test_a_tick_enqueues_one_job_due_at_its_time(shop: Shop) -> None:
    assert shop.set(zone="Europe/Berlin", queue="other", tags=[("tenant", "a")]) is (
        SetOutcome.CREATED
    )
    assert shop.wait(minutes=59) == []
    (tick,) = shop.wait(minutes=1, seconds=3)
    assert (tick.outcome, tick.at) == (T.MINTED, START + timedelta(hours=1))
    assert tick.decided_at == shop.now
    assert tick.job_id is not None
    job = shop.app.monitor.job(tick.job_id)
    assert job is not None
    assert (job.wire_name, job.queue, job.due_at) == ("backup", "other", tick.at)
    assert job.tags == ("night", ("tenant", "a"))
    assert shop.app.monitor.tick_of_job(job.id) == tick
    view = shop.app.monitor.schedule("nightly")
    assert view is not None
    assert (view.last_tick, view.next_tick_at) == (tick, START + timedelta(hours=2))
    assert len(view.next_ticks) == 5
    assert shop.wait(minutes=5) == []


def test_setting_again_keeps_the_place_and_changes_take_effect_from_now(shop: Shop) -> None:
    shop.set(catch_up=CatchUp.COALESCE, may_overlap=True)
    shop.wait(hours=1)
    shop.now += timedelta(hours=3)
    assert shop.set(catch_up=CatchUp.COALESCE, may_overlap=True) is SetOutcome.UNCHANGED
    assert shop.set(catch_up=CatchUp.COALESCE, may_overlap=True, queue="q") is SetOutcome.CHANGED
    assert outcomes(shop.wait()) == [(T.COALESCED, 3)]
    shop.now += timedelta(minutes=150)
    assert shop.set(cron="*/30 * * * *", may_overlap=True) is SetOutcome.CHANGED
    assert shop.wait() == []
    (tick,) = shop.wait(minutes=30)
    assert tick.at == shop.now


def test_no_tick_runs_twice_when_the_cron_is_changed_back_and_forth(shop: Shop) -> None:
    shop.set(may_overlap=True)
    shop.wait(hours=1)
    shop.now -= timedelta(seconds=90)
    shop.set(cron="*/30 * * * *", may_overlap=True)
    shop.set(cron=HOURLY, may_overlap=True)
    assert shop.wait(seconds=120) == []
    assert shop.jobs() == 1


def test_ticks_missed_in_an_outage_are_skipped_in_sight(shop: Shop) -> None:
    shop.set()
    missed, on_time = shop.wait(hours=5)
    assert outcomes([missed, on_time]) == [(T.MISSED, 4), (T.MINTED, 1)]
    assert missed.job_id is None
    shop.end_all()
    assert outcomes(shop.wait(hours=3, minutes=10)) == [(T.MISSED, 3)]
    assert shop.jobs() == 1


def test_ticks_missed_in_an_outage_are_coalesced_to_exactly_one(shop: Shop) -> None:
    shop.set(catch_up="coalesce")
    (tick,) = shop.wait(hours=5, minutes=20)
    assert (tick.outcome, tick.count.value) == (T.COALESCED, 5)
    assert tick.at == START + timedelta(hours=5)
    assert shop.wait(minutes=5) == []
    assert shop.jobs() == 1


def test_a_clock_that_jumps_ten_years_mints_at_most_once(shop: Shop) -> None:
    shop.set("second", cron="* * * * * *", catch_up="coalesce")
    shop.now += timedelta(days=3650)
    shop.minter.run_once()
    (tick,) = shop.ticks("second")
    assert (tick.count.value, tick.count.capped) == (1000, True)
    shop.now -= timedelta(days=3650)
    for _ in range(3):
        shop.now += timedelta(seconds=1)
        shop.minter.run_once()
    assert shop.jobs() == 1


def test_a_clock_that_steps_back_over_a_tick_mints_it_once(shop: Shop) -> None:
    shop.set(may_overlap=True)
    assert len(shop.wait(hours=1, seconds=5)) == 1
    shop.now -= timedelta(seconds=90)
    assert shop.wait() == []
    assert shop.wait(seconds=120) == []
    assert len(shop.wait(hours=1)) == 1


def test_a_tick_that_would_overlap_is_skipped_in_sight(shop: Shop) -> None:
    shop.set()
    shop.wait(hours=1)
    (skipped,) = shop.wait(hours=1)
    assert (skipped.outcome, skipped.job_id) == (T.OVERLAPPED, None)
    shop.end_all()
    assert outcomes(shop.wait(hours=1)) == [(T.MINTED, 1)]


def test_runs_that_may_overlap_do(shop: Shop) -> None:
    shop.set(may_overlap=True)
    shop.wait(hours=1)
    assert outcomes(shop.wait(hours=1)) == [(T.MINTED, 1)]
    assert shop.jobs() == 2


def test_every_second_is_minted_although_the_minter_comes_late(shop: Shop) -> None:
    shop.set(cron="* * * * * *", may_overlap=True)
    assert len(shop.wait(seconds=7.5)) == 7


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("cron", {"cron": "0 0 31 2 *"}), ("cron", {"cron": "61 * * * *"}),
        ("cron", {"cron": "every day"}), ("cron", {"cron": ""}), ("cron", {"cron": None}),
        ("cron", {"cron": "0 0\0* * *"}),
        ("zone", {"zone": "Mars/Base"}), ("zone", {"zone": ""}), ("zone", {"zone": "../etc"}),
        ("zone", {"zone": "localtime"}), ("zone", {"zone": "CEST"}), ("zone", {"zone": None}),
        ("catch_up", {"catch_up": "all"}), ("may_overlap", {"may_overlap": "no"}),
    ],
)  # fmt: skip
def test_what_is_no_schedule_is_refused_at_the_call(
    shop: Shop, field: str, given: dict[str, Any]
) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        shop.set(**given)
    assert refused.value.field == field
    with pytest.raises(InvalidSchedule):
        shop.app.schedule("other", shop.backup.bind(), **({"cron": HOURLY} | given))
    assert shop.app.monitor.schedules() == ()


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 129])
def test_an_id_that_no_store_may_hold_is_refused(shop: Shop, name: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: shop.set(name),
        lambda: shop.app.client.remove_schedule(name),
        lambda: shop.app.monitor.schedule(name),
        lambda: shop.app.monitor.schedule_ticks(name),
        lambda: shop.app.operator.trigger_schedule(name, actor="ann"),
    ]
    for call in calls:
        with pytest.raises((InvalidValue, ValueTooLarge)):
            call()


def test_a_removed_schedule_mints_no_more_and_its_jobs_stay(shop: Shop) -> None:
    shop.set()
    shop.wait(hours=1)
    assert shop.app.client.remove_schedule("nightly")
    assert not shop.app.client.remove_schedule("nightly")
    shop.wait(hours=5)
    assert (shop.jobs(), shop.app.monitor.schedule("nightly")) == (1, None)


def test_a_trigger_is_audited_and_leaves_the_ticks_as_they_are(shop: Shop) -> None:
    shop.set()
    preview = shop.app.operator.preview_trigger_schedule("nightly")
    assert preview is not None
    assert preview.allowed
    assert "One backup job is enqueued to nights" in preview.reason
    result = shop.app.operator.trigger_schedule("nightly", actor="ann")
    assert result.outcome is TriggerOutcome.TRIGGERED
    assert result.job_id is not None
    (row,) = shop.app.monitor.audit()
    assert (row.actor, row.action, row.subject) == ("ann", "trigger_schedule", "nightly")
    tick = shop.app.monitor.tick_of_job(result.job_id)
    assert tick is not None
    assert tick.outcome is T.TRIGGERED
    shop.end_all()
    assert outcomes(shop.wait(hours=1)) == [(T.MINTED, 1)]


def test_a_trigger_at_the_instant_of_a_tick_does_not_take_its_place(shop: Shop) -> None:
    shop.set(may_overlap=True)
    shop.now += timedelta(hours=1)
    for _ in range(3):
        shop.app.operator.trigger_schedule("nightly", actor="ann")
    assert outcomes(shop.wait()) == [(T.MINTED, 1)]
    assert shop.jobs() == 4


def test_a_trigger_does_not_overlap_what_must_not_overlap(shop: Shop) -> None:
    shop.set()
    shop.wait(hours=1)
    result = shop.app.operator.trigger_schedule("nightly", actor="ann")
    assert (result.outcome, result.state) == (TriggerOutcome.REFUSED, JobState.SCHEDULED)
    preview = shop.app.operator.preview_trigger_schedule("nightly")
    assert preview is not None
    assert (preview.allowed, preview.live_job_id) == (False, result.job_id)
    assert shop.app.monitor.audit() == ()
    unknown = shop.app.operator.trigger_schedule("other", actor="ann")
    assert unknown.outcome is TriggerOutcome.NOT_FOUND


def test_a_tick_does_not_overlap_a_triggered_run(shop: Shop) -> None:
    shop.set()
    shop.app.operator.trigger_schedule("nightly", actor="ann")
    assert outcomes(shop.wait(hours=1)) == [(T.OVERLAPPED, 1)]


def test_rows_about_ticks_are_bounded(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = 5
    bounded = schedules._OLDEST_KEPT.offset(kept - 1)
    monkeypatch.setattr(schedules, "_OLDEST_KEPT", bounded)
    shop.set(may_overlap=True)
    for _ in range(kept + 3):
        shop.wait(hours=1)
    assert [tick.at for tick in shop.ticks()] == [
        START + timedelta(hours=hour) for hour in range(4, 9)
    ]


def test_a_schedule_of_a_zone_this_host_does_not_know_holds_up_no_other(shop: Shop) -> None:
    shop.set("a")
    shop.set("b")
    shop.app.database.write(
        lambda c: c.execute(
            service_tables.schedules.update()
            .where(service_tables.schedules.c.id == "a")
            .values(zone="Mars/Base")
        )
    )
    shop.now += timedelta(hours=1)
    assert not shop.minter.run_once()
    assert (len(shop.ticks("a")), len(shop.ticks("b"))) == (0, 1)
    view = shop.app.monitor.schedule("a")
    assert view is not None
    assert "Mars/Base" in view.words


def test_two_nodes_never_mint_the_same_tick_twice(shop: Shop) -> None:
    """Each of four nodes decides every tick at the same instant; nobody meets an error."""
    rounds, nodes = 10, 4
    shop.set(may_overlap=True)
    url = shop.app.engine.url.render_as_string(hide_password=False)
    databases = [Database(url) for _ in range(nodes)]
    for database in databases:
        database.prepare()
        database.clock = SetClock(lambda: shop.now)
    minters = [ScheduleMinter(database) for database in databases]
    start = Barrier(nodes)

    def mint(minter: ScheduleMinter) -> None:
        start.wait(timeout=30)
        minter.run_once()

    with ThreadPoolExecutor(nodes) as pool:
        for _ in range(rounds):
            shop.now += timedelta(hours=1)
            list(pool.map(mint, minters))
            shop.minter.run_once()
    assert shop.jobs() == rounds
    assert outcomes(shop.ticks()) == [(T.MINTED, 1)] * rounds
    assert sum(sum(database.retries.values()) for database in databases) == 0
    for database in databases:
        database.dispose()


def test_a_decision_on_what_was_read_before_another_node_decided_writes_nothing(
    shop: Shop,
) -> None:
    shop.set(may_overlap=True)
    shop.now += timedelta(hours=1)
    database, now = shop.app.database, shop.now
    (read,) = database.read(schedules.read_due, now=now, limit=10)
    due = due_ticks(read.schedule.recurrence, after=read.cursor_at, now=now, catch_up=CatchUp.SKIP)
    shop.minter.run_once()
    assert database.write(schedules.decide_ticks, read, due, now=now, new_id=uuid4) == []
    assert database.read(lambda c: c.scalar(select(func.count()).select_from(schedule_ticks))) == 1


def test_registered_schedules_are_set_by_each_node_that_starts(shop: Shop) -> None:
    shop.app.schedule("registered", shop.backup.bind(), cron="30 2 * * *", zone="Europe/Berlin")
    with pytest.raises(InvalidValue):
        shop.app.schedule("registered", shop.backup.bind(), cron=HOURLY)
    shop.app.introduce()
    shop.app.introduce()
    (view,) = shop.app.monitor.schedules()
    assert (view.id, view.words) == ("registered", "At 02:30 every day")
