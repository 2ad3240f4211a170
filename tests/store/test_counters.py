"""The counter ledger: counts are the rows, whatever moved and whatever is folded."""

import random
import threading
from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import func, insert, select

from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.store import counter_folding
from latchwork.store.counter_folding import fold
from latchwork.store.database import Database
from latchwork.store.dialects import try_lock
from latchwork.store.schema import counter_entries, counter_periods, jobs
from tests.store.scene import Scene

S = JobState
ENDS = (S.SUCCEEDED, S.DEAD_LETTERED, S.CANCELLED, S.QUARANTINED, S.SCHEDULED)


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def fold_now(scene: Scene) -> int:
    return scene.database.write(fold, now=scene.now)


def stored_rows(scene: Scene) -> dict[tuple[str, JobState], int]:
    with scene.database.engine.connect() as connection:
        found = connection.execute(
            select(jobs.c.queue, jobs.c.state, func.count()).group_by(jobs.c.queue, jobs.c.state)
        )
        return {(queue, state): count for queue, state, count in found}


def counted(scene: Scene) -> dict[tuple[str, JobState], int]:
    by_queue = scene.monitor.counts().by_queue
    return {(queue, state): n for queue, row in by_queue.items() for state, n in row.items()}


def move_at_random(scene: Scene, chance: random.Random) -> None:
    queue = chance.choice(["default", "mail"])
    scene.wait(chance.random() * 30)
    match chance.randrange(5):
        case 0:
            scene.enqueue_many(chance.randint(1, 5), queue=queue)
        case 1:
            parent = scene.enqueue(queue=queue)
            scene.enqueue_many(2, parents=(parent,), queue=queue)
        case 2:
            scene.sweep(retry_in=chance.choice([None, 0]))
        case 3:
            dead = [one for one in scene.monitor.jobs().jobs if one.state is S.DEAD_LETTERED]
            for job in dead[:1]:
                scene.requeue(job.id)
        case _:
            for claimed in scene.claim(3, queue=queue):
                if chance.random() < 0.8:
                    scene.end(claimed, chance.choice(ENDS))


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_the_stored_rows_after_random_moves(scene: Scene, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable
    for _ in range(25):
        move_at_random(scene, chance)
        if chance.random() < 0.2:
            fold_now(scene)
        assert counted(scene) == stored_rows(scene)
    counts = scene.monitor.counts()
    assert counts.total == sum(stored_rows(scene).values())


def test_folding_changes_no_figure(scene: Scene) -> None:
    chance = random.Random(7)  # noqa: S311 - repeatable
    for _ in range(30):
        move_at_random(scene, chance)

    def figures() -> tuple[object, ...]:
        monitor, since = scene.monitor, scene.now - timedelta(minutes=30)
        return (
            monitor.counts(), monitor.rates("minute", since=since),
            monitor.rates("hour", since=since), monitor.durations("charge-card"), monitor.queues(),
        )  # fmt: skip

    before = figures()
    assert fold_now(scene) > 0
    assert fold_now(scene) == 0
    assert figures() == before


def test_a_fold_takes_a_bounded_number_of_entries(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter_folding, "MAX_ENTRIES", 3)
    for _ in range(5):
        scene.enqueue()
    assert [fold_now(scene) for _ in range(3)] == [3, 2, 0]
    assert scene.monitor.counts().by_state[S.SCHEDULED] == 5


def test_one_fold_at_a_time(postgres_url: str) -> None:
    scene = Scene(Database(postgres_url))
    scene.enqueue()
    with scene.database.engine.connect() as other:
        assert try_lock(other, "counter folding")
        assert fold_now(scene) == 0
    assert fold_now(scene) == 1
    scene.database.dispose()


def test_folds_and_moves_at_once_lose_nothing(scene: Scene) -> None:
    stop = threading.Event()

    def keep_folding() -> None:
        while not stop.is_set():
            fold_now(scene)

    folder = threading.Thread(target=keep_folding)
    folder.start()
    for _ in range(12):
        scene.enqueue_many(3)
        for claimed in scene.claim(2):
            scene.end(claimed, S.SUCCEEDED)
        assert counted(scene) == stored_rows(scene)
    stop.set()
    folder.join()


def test_rates_have_a_point_for_every_minute(scene: Scene) -> None:
    scene.now = scene.now.replace(minute=10, second=30)
    scene.enqueue_many(3)
    scene.run(S.SUCCEEDED)
    scene.wait(120)
    scene.run(S.SCHEDULED, retry_in=600)
    scene.run(S.DEAD_LETTERED)
    points = scene.monitor.rates("minute", since=scene.now - timedelta(minutes=3))
    assert [point.starts_at.minute for point in points] == [9, 10, 11, 12]
    assert [point.enqueued for point in points] == [0, 3, 0, 0]
    assert [point.started for point in points] == [0, 1, 0, 2]
    assert [point.succeeded for point in points] == [0, 1, 0, 0]
    assert [point.failed for point in points] == [0, 0, 0, 2]
    assert [point.dead_lettered for point in points] == [0, 0, 0, 1]


def test_rates_can_be_those_of_one_wire_name_or_queue(scene: Scene) -> None:
    scene.enqueue_many(2, wire_name="mail", queue="slow")
    scene.enqueue("pack")
    since = scene.now - timedelta(hours=1)

    def enqueued(**chosen: str) -> int:
        points = scene.monitor.rates(
            "hour", since=since, until=scene.now + timedelta(hours=1), **chosen
        )
        return sum(point.enqueued for point in points)

    assert enqueued() == 3
    assert enqueued(wire_name="mail") == 2
    assert enqueued(queue="default") == 1
    assert enqueued(wire_name="mail", queue="default") == 0


def test_run_times_are_good_to_their_bucket(scene: Scene) -> None:
    assert scene.monitor.durations("charge-card").median_seconds is None
    for seconds in (1, 1, 1, 1, 1, 1, 1, 1, 1, 30):
        scene.enqueue()
        (claimed,) = scene.claim()
        scene.wait(seconds)
        scene.end(claimed, S.SUCCEEDED)
    summary = scene.monitor.durations("charge-card")
    assert summary.count == 10
    assert summary.mean_seconds == pytest.approx(3.9)
    assert summary.median_seconds is not None
    assert summary.p95_seconds is not None
    assert 0.5 <= summary.median_seconds <= 1.1
    assert 16 <= summary.p95_seconds <= 33


def test_old_periods_are_dropped(scene: Scene) -> None:
    scene.enqueue()
    fold_now(scene)
    periods = select(counter_periods.c.period).order_by(counter_periods.c.period)
    ever = ["ever"]
    for hours, kept in ((1, [*ever, "hour", "minute"]), (2, [*ever, "hour"]), (24 * 8, ever)):
        scene.wait(hours * 3600)
        fold_now(scene)
        with scene.database.engine.connect() as connection:
            assert list(connection.scalars(periods)) == kept
    assert scene.monitor.counts().total == 1


@pytest.mark.no_audit("ledger entries are written by hand")
def test_a_purge_is_subtracted(scene: Scene) -> None:
    scene.enqueue()
    entry = {
        "minute": scene.now, "queue": "default", "wire_name": "pack", "from_state": S.SCHEDULED,
        "to_state": None, "count": 1, "seconds": 0.0, "buckets": "{}",
    }  # fmt: skip
    scene.database.write(lambda connection: connection.execute(insert(counter_entries), entry))
    assert scene.monitor.counts().by_queue == {}
    fold_now(scene)
    assert scene.monitor.counts().total == 0
    assert Counter(scene.monitor.counts().by_state).total() == 0


def test_an_unknown_period_is_refused(scene: Scene) -> None:
    with pytest.raises(InvalidValue):
        scene.monitor.rates("week", since=scene.now)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        scene.monitor.rates("hour", since=scene.now.replace(tzinfo=None))
