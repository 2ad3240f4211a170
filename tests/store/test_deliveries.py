"""Deliveries: at least once, in order per job, with back-off, until they are dead (section 7)."""

import asyncio
import threading
from typing import Any

import pytest
from sqlalchemy import select

from latchwork.decisions.observers import BACK_OFF, MAX_LOST_STARTS
from latchwork.decisions.retries import delay_seconds
from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue, StoreUnavailable
from latchwork.maintenance.observer_calls import MAX_LEFT_BEHIND
from latchwork.observer_views import ReplayOutcome
from latchwork.observers import ObserverContext
from latchwork.operations import Operator
from latchwork.settings import Settings
from latchwork.store import deliveries
from latchwork.store.database import Database
from latchwork.store.service_tables import deliveries as table
from latchwork.views import TransitionView
from tests.store.scene import Scene
from tests.store.watching import Watcher, watch

S = JobState


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


@pytest.fixture
def watcher(scene: Scene) -> Watcher:
    return watch(scene)


def failing_for(*refused: object) -> Any:
    def react(row: TransitionView, _: ObserverContext) -> None:
        if row.job_id in refused:
            raise ConnectionError("no answer")

    return react


def test_a_row_in_back_off_holds_back_only_later_rows_of_its_own_job(
    scene: Scene, watcher: Watcher
) -> None:
    broken, other = scene.enqueue(), scene.enqueue()
    watcher.react = failing_for(broken)
    watcher.catch_up()
    assert scene.run(S.SUCCEEDED) == broken
    scene.run(S.SUCCEEDED)
    watcher.catch_up()
    assert watcher.met_of(broken) == [0]
    assert watcher.met_of(other) == [0, 1, 2]
    assert (watcher.view.pending.value, watcher.view.backing_off.value) == (3, 3)
    assert watcher.view.lag.value == 0
    watcher.react = lambda *_: None
    scene.wait(delay_seconds(BACK_OFF, 1))
    watcher.catch_up()
    assert watcher.met_of(broken) == [0, 0, 1, 2]
    assert watcher.view.pending.value == 0


def test_later_rows_wait_through_every_back_off_of_an_earlier_one(
    scene: Scene, watcher: Watcher
) -> None:
    job = scene.enqueue()
    watcher.react = failing_for(job)
    watcher.catch_up()
    scene.run(S.SUCCEEDED)
    for failures in range(1, 5):
        scene.wait(delay_seconds(BACK_OFF, failures))
        watcher.catch_up()
    assert watcher.met_of(job) == [0] * 5
    assert [one.attempt for one in watcher.told] == [1, 2, 3, 4, 5]
    assert len({one.key for one in watcher.told}) == 1


def test_after_ten_failures_a_delivery_is_dead_and_the_next_row_follows(
    scene: Scene, watcher: Watcher
) -> None:
    job = scene.enqueue()
    watcher.react = failing_for(job)
    for _ in range(12):
        watcher.catch_up()
        scene.wait(BACK_OFF.cap_seconds)
    assert watcher.met_of(job) == [0] * 10
    (dead,) = scene.monitor.dead_deliveries("bell")
    assert (dead.failures, dead.starts, dead.error) == (10, 10, "ConnectionError: no answer")
    assert dead.transition == scene.monitor.history(job).transitions[0]
    assert watcher.view.last_error == "ConnectionError: no answer"
    watcher.react = lambda *_: None
    scene.run(S.SUCCEEDED)
    watcher.catch_up()
    assert watcher.met_of(job)[10:] == [1, 2]
    assert (watcher.view.dead.value, watcher.view.pending.value) == (1, 0)


def test_a_dead_delivery_can_be_replayed_with_all_its_tries(scene: Scene, watcher: Watcher) -> None:
    operator = Operator(scene.database)
    job = scene.enqueue()
    watcher.react = failing_for(job)
    for _ in range(10):
        watcher.catch_up()
        scene.wait(BACK_OFF.cap_seconds)
    (dead,) = scene.monitor.dead_deliveries("bell")
    preview = operator.preview_replay_delivery(dead.id)
    assert preview is not None
    assert preview.allowed
    answer = operator.replay_delivery(dead.id, actor="ann")
    assert (answer.outcome, answer.observer) == (ReplayOutcome.REPLAYED, "bell")
    watcher.catch_up()
    assert scene.monitor.dead_deliveries("bell") == ()
    assert operator.replay_delivery(dead.id, actor="ben").outcome is ReplayOutcome.REFUSED
    refused = operator.preview_replay_delivery(dead.id)
    assert refused is not None
    assert not refused.allowed
    watcher.react = lambda *_: None
    scene.wait(BACK_OFF.cap_seconds)
    watcher.catch_up()
    assert watcher.met_of(job) == [0] * 12
    assert operator.replay_delivery(dead.id, actor="ben").outcome is ReplayOutcome.NOT_FOUND
    assert operator.preview_replay_delivery(dead.id) is None
    (row,) = scene.monitor.audit()
    assert (row.action, row.subject, row.actor) == ("replay_delivery", "bell", "ann")
    assert row.detail["job"] == str(job)


@pytest.mark.parametrize("number", [0, -1, 2**63, "7", True, None])
def test_a_malformed_delivery_number_is_refused(scene: Scene, number: Any) -> None:
    with pytest.raises(InvalidValue):
        Operator(scene.database).replay_delivery(number, actor="ann")


def test_calls_that_end_their_process_are_counted_apart_and_alone(
    scene: Scene, watcher: Watcher
) -> None:
    """A start is counted before the call; a process that dies leaves it uncounted as failed."""
    scene.enqueue()
    watcher.catch_up()
    killer, rest = scene.enqueue(), scene.enqueue_many(2)
    scene.database.write(take_all, watcher)
    first = scene.database.write(start, watcher)
    assert len(first.deliveries) == 3, "the process died here, with three calls begun"
    for attempt in range(2, MAX_LOST_STARTS + 1):
        alone = scene.database.write(start, watcher)
        assert [one.row.job_id for one in alone.deliveries] == [killer]
        assert alone.deliveries[0].starts == attempt - 1
        assert alone.more
    watcher.met.clear()
    watcher.catch_up()
    assert [row.job_id for row in watcher.met] == rest
    (dead,) = scene.monitor.dead_deliveries("bell")
    assert (dead.starts, dead.failures, dead.error) == (20, 0, deliveries.WORN_OUT)


def take_all(connection: Any, watcher: Watcher) -> None:
    """What a round does before it calls: take the new rows from the log."""
    batch, _ = watcher.delivery._look(connection)
    deliveries.add(connection, "bell", batch, now=watcher.scene.now)
    watcher.delivery._reading = batch.reading


def start(connection: Any, watcher: Watcher) -> deliveries.Started:
    begun = deliveries.start(connection, "bell", "node-1", limit=100, now=watcher.scene.now)
    assert begun is not None
    return begun


def test_rows_that_were_started_but_not_called_are_not_counted(
    scene: Scene, watcher: Watcher
) -> None:
    scene.enqueue_many(3)
    watcher.react = lambda *_: watcher.stopping.set()
    watcher.catch_up()
    assert len(watcher.met) == 1
    counted = select(table.c.starts).order_by(table.c.id)
    assert scene.database.read(lambda c: c.scalars(counted).all()) == [0, 0]


def test_an_async_observer_is_cancelled_after_its_time(scene: Scene, watcher: Watcher) -> None:
    stopped = threading.Event()

    async def hang(row: TransitionView, context: ObserverContext) -> None:
        try:
            await asyncio.sleep(600)
        finally:
            stopped.set()

    watcher.call_seconds = 0.05
    watcher.delivery = watcher.delivering(hang)
    scene.enqueue()
    watcher.catch_up()
    assert stopped.is_set()
    assert watcher.view.last_error == "TimeoutError: it took longer than 0.05 seconds"
    assert watcher.view.backing_off.value == 1


def test_a_timeout_of_its_own_is_told_in_its_own_words(scene: Scene, watcher: Watcher) -> None:
    async def late(row: TransitionView, context: ObserverContext) -> None:
        raise TimeoutError("the pager did not answer")

    watcher.delivery = watcher.delivering(late)
    scene.enqueue()
    watcher.catch_up()
    assert watcher.view.last_error == "TimeoutError: the pager did not answer"


def test_a_plain_observer_that_hangs_is_left_behind_and_few_times_only(
    scene: Scene, watcher: Watcher
) -> None:
    release, calls = threading.Event(), []

    def hang(row: TransitionView, context: ObserverContext) -> None:
        calls.append(row.job_id)
        release.wait(60)

    watcher.call_seconds = 0.01
    watcher.delivery = watcher.delivering(hang)
    jobs = scene.enqueue_many(MAX_LEFT_BEHIND + 2)
    watcher.catch_up()
    assert calls == jobs[:MAX_LEFT_BEHIND]
    assert watcher.view.backing_off.value == MAX_LEFT_BEHIND
    release.set()
    while watcher.delivery._calls.blocked:
        pass
    watcher.catch_up()
    assert calls == jobs


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("is_async", [True, False])
def test_whatever_an_observer_raises_is_a_failure_and_stops_nothing(
    scene: Scene, watcher: Watcher, raised: type[BaseException], is_async: bool
) -> None:
    async def raise_async(row: TransitionView, context: ObserverContext) -> None:
        raise raised

    def raise_plain(row: TransitionView, context: ObserverContext) -> None:
        raise raised

    watcher.delivery = watcher.delivering(raise_async if is_async else raise_plain)
    scene.enqueue_many(2)
    watcher.catch_up()
    assert watcher.view.backing_off.value == 2
    assert watcher.view.last_error is not None
    assert raised.__name__ in watcher.view.last_error


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "stored"),
    [
        (ValueError("a\0b\ud800"), "ValueError: a\ufffdb\ufffd"),
        (ValueError("\u00e9" * 400), "ValueError: " + "\u00e9" * 250),
        (Unspeakable(), "Unspeakable: its text cannot be written: ValueError"),
    ],
)
def test_an_error_is_stored_whatever_it_says(
    scene: Scene, watcher: Watcher, error: Exception, stored: str
) -> None:
    def react(*_: object) -> None:
        raise error

    watcher.react = react
    scene.enqueue()
    watcher.catch_up()
    assert watcher.view.last_error == stored


def test_the_switch_leaves_the_type_of_an_error_alone(scene: Scene, watcher: Watcher) -> None:
    scene.database.settings = Settings(disable_failure_detail=True)
    watcher.react = failing_for(scene.enqueue())
    watcher.catch_up()
    assert watcher.view.last_error == "ConnectionError"


def test_a_settlement_whose_answer_was_lost_is_written_again_and_counts_once(
    scene: Scene, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = scene.enqueue()
    scene.enqueue()
    watcher.react = failing_for(broken)
    write = scene.database.write
    lost: list[bool] = []

    def losing(function: Any, *args: Any, **kwargs: Any) -> Any:
        answer = write(function, *args, **kwargs)
        if function is deliveries.settle and not lost:
            lost.append(answer)
            raise StoreUnavailable("the answer was lost")
        return answer

    monkeypatch.setattr(scene.database, "write", losing)
    with pytest.raises(StoreUnavailable):
        watcher.catch_up()
    watcher.catch_up()
    assert len(watcher.met) == 2
    assert (watcher.view.delivered, watcher.view.pending.value) == (1, 1)
    counted = select(table.c.starts, table.c.failures)
    assert scene.database.read(lambda c: c.execute(counted).one()) == (1, 1)
