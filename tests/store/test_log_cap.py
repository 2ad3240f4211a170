"""Beyond 64 rows a job's oldest are dropped, up to what an active observer has not passed."""

from datetime import timedelta
from uuid import UUID

import pytest

from latchwork.decisions.observers import ACTIVE_FOR
from latchwork.decisions.states import JobState
from latchwork.operations import Operator
from latchwork.store.database import Database
from latchwork.store.log_writing import KEPT_ROWS_PER_JOB
from latchwork.store.transition_log import Reading, read_batch
from tests.store.builders import counted_statements
from tests.store.scene import Scene
from tests.store.watching import watch

S = JobState


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def move(scene: Scene, times: int) -> None:
    """Two rows each time: the one job is claimed and goes back."""
    for _ in range(times):
        scene.run(S.SCHEDULED)


def ordinals(scene: Scene, job_id: UUID) -> list[int]:
    return [row.ordinal for row in scene.monitor.history(job_id).transitions]


def test_at_the_cap_every_row_is_kept_and_beyond_it_the_oldest_go(scene: Scene) -> None:
    job = scene.enqueue()
    move(scene, 31)
    scene.claim()
    assert ordinals(scene, job) == list(range(KEPT_ROWS_PER_JOB))
    scene.wait(60)
    scene.sweep(retry_in=0)
    assert ordinals(scene, job) == list(range(1, KEPT_ROWS_PER_JOB + 1))
    move(scene, 20)
    assert ordinals(scene, job) == list(range(41, 105))
    assert scene.monitor.history(job).dropped == 41


def test_dropping_stops_at_the_first_row_an_active_observer_has_not_passed(scene: Scene) -> None:
    job = scene.enqueue()
    move(scene, 5)
    watcher = watch(scene)
    move(scene, 45)
    assert ordinals(scene, job) == list(range(11, 101))
    watcher.catch_up()
    assert watcher.met_of(job) == list(range(11, 101))
    assert ordinals(scene, job) == list(range(37, 101))


def test_what_was_kept_back_is_dropped_with_a_later_row(scene: Scene) -> None:
    job = scene.enqueue()
    watcher = watch(scene)
    move(scene, 40)
    assert len(ordinals(scene, job)) == 80
    Operator(scene.database).retire_observer("bell", actor="ann")
    move(scene, 1)
    assert ordinals(scene, job) == list(range(19, 83))
    assert watcher.view.retired_by == "ann"


def test_the_slowest_active_observer_decides(scene: Scene) -> None:
    job = scene.enqueue()
    fast, slow = watch(scene, "fast"), watch(scene, "slow")
    move(scene, 40)
    fast.catch_up()
    assert len(ordinals(scene, job)) == 80
    slow.catch_up()
    assert ordinals(scene, job) == list(range(17, 81))


def test_an_observer_unregistered_for_seven_days_keeps_nothing_back(scene: Scene) -> None:
    job = scene.enqueue()
    watch(scene)
    move(scene, 40)
    scene.wait(ACTIVE_FOR.total_seconds())
    move(scene, 1)
    assert ordinals(scene, job) == list(range(19, 83))


def test_a_row_that_was_dropped_is_not_missed_by_its_own_copy(scene: Scene) -> None:
    """A delivery in back-off holds no row of the log: it has a copy."""
    job = scene.enqueue()
    watcher = watch(scene, "bell", S.LEASED)
    watcher.react = lambda *_: 1 / 0  # type: ignore[assignment]
    move(scene, 40)
    watcher.catch_up()
    assert ordinals(scene, job) == list(range(17, 81))
    watcher.react = lambda *_: None
    scene.now += timedelta(minutes=1)
    watcher.catch_up()
    watcher.catch_up()
    assert watcher.met_of(job) == [1, *range(1, 80, 2)]


def test_a_reader_whose_place_is_older_than_what_is_kept_is_told(scene: Scene) -> None:
    scene.enqueue()
    move(scene, 40)
    first = scene.database.read(read_batch, Reading(3), limit=10)
    then = scene.database.read(read_batch, first.reading, limit=10)
    assert first[0].position == 18
    assert 18 in (first.gone_before, then.gone_before)


def test_the_cap_costs_a_job_below_it_nothing(scene: Scene) -> None:
    scene.enqueue()
    watch(scene)
    with counted_statements(scene.database) as statements:
        move(scene, 1)
    assert not any("latchwork_observers" in statement for statement in statements)
