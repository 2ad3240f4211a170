"""Observers: where they start, what they are called for, and who serves them (section 7)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from latchwork.decisions.observers import ACTIVE_FOR
from latchwork.decisions.states import HistoryPolicy, JobState
from latchwork.errors import HistoryOff, InvalidValue, ValueTooLarge
from latchwork.observer_views import ObserverScope, ObserverState, RetireOutcome
from latchwork.observers import checked_scope
from latchwork.operations import Operator
from latchwork.store import observer_cursors
from latchwork.store.database import Database
from tests.store.scene import Scene
from tests.store.watching import EVERY_STATE, LEASE_SECONDS, Watcher, watch

S = JobState


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def test_a_new_observer_starts_at_the_end_of_the_log_unless_told(scene: Scene) -> None:
    early = scene.enqueue()
    late, whole = watch(scene, "late"), watch(scene, "whole", start="beginning")
    later = scene.enqueue()
    late.catch_up()
    whole.catch_up()
    assert [row.job_id for row in late.met] == [later]
    assert [row.job_id for row in whole.met] == [early, later]


def test_an_observer_is_called_for_its_states_wire_name_and_queue_only(scene: Scene) -> None:
    failures = watch(scene, "failures", S.DEAD_LETTERED, S.QUARANTINED)
    of_type = watch(scene, "of-type", wire_name="ship")
    of_queue = watch(scene, "of-queue", queue="slow")
    scene.enqueue()
    failed = scene.run(S.DEAD_LETTERED)
    shipped = scene.enqueue("ship")
    slow = scene.enqueue(queue="slow")
    for watcher in (failures, of_type, of_queue):
        watcher.catch_up()
    assert [(row.job_id, row.state) for row in failures.met] == [(failed, S.DEAD_LETTERED)]
    assert [row.job_id for row in of_type.met] == [shipped]
    assert [row.job_id for row in of_queue.met] == [slow]
    assert failures.view.passed_position == of_type.view.passed_position


def test_the_row_is_delivered_as_it_is_logged(scene: Scene) -> None:
    watcher = watch(scene)
    scene.enqueue()
    job = scene.run(S.DEAD_LETTERED)
    watcher.catch_up()
    assert watcher.met == list(scene.monitor.history(job).transitions)
    assert watcher.met[-1].failure_detail == "Traceback ..."
    assert [one.attempt for one in watcher.told] == [1, 1, 1]
    assert len({one.key for one in watcher.told}) == 3


def test_many_nodes_may_register_at_once(scene: Scene) -> None:
    scope = ObserverScope("bell", (S.SUCCEEDED,))
    with ThreadPoolExecutor(8) as nodes:
        for node in [
            nodes.submit(scene.database.write, observer_cursors.register, scope, now=scene.now)
            for _ in range(16)
        ]:
            node.result()
    assert [one.name for one in scene.monitor.observers()] == ["bell"]


def test_registering_again_keeps_the_place_and_takes_the_new_scope(scene: Scene) -> None:
    watch(scene, "bell", S.SUCCEEDED)
    missed = scene.enqueue()
    again = watch(scene, "bell", S.SCHEDULED, S.DEAD_LETTERED, start="beginning")
    again.catch_up()
    assert [row.job_id for row in again.met] == [missed]
    assert again.view.states == (S.SCHEDULED, S.DEAD_LETTERED)


def test_a_place_survives_a_restart_and_nothing_comes_twice(scene: Scene) -> None:
    first = watch(scene)
    one = scene.enqueue()
    first.catch_up()
    first.lease.release()
    two = scene.enqueue()
    second = watch(scene, owner="node-2")
    second.catch_up()
    assert [row.job_id for row in first.met] == [one]
    assert [row.job_id for row in second.met] == [two]
    assert second.view.delivered == 2


def test_one_dispatcher_serves_an_observer_until_its_lease_runs_out(scene: Scene) -> None:
    first, second = watch(scene), watch(scene, owner="node-2")
    scene.enqueue()
    first.catch_up()
    second.catch_up()
    assert second.met == []
    assert first.view.owner == "node-1"
    scene.wait(LEASE_SECONDS - 1)
    first.lease.renew()
    scene.wait(LEASE_SECONDS - 1)
    second.catch_up()
    assert second.met == []
    scene.wait(1)
    job = scene.enqueue()
    second.catch_up()
    assert [row.job_id for row in second.met] == [job]


def test_a_dispatcher_that_lost_its_lease_writes_nothing(scene: Scene) -> None:
    first, second = watch(scene), watch(scene, owner="node-2")

    def freeze(*_: object) -> None:
        scene.wait(LEASE_SECONDS)
        first.react = lambda *_: None
        second.catch_up()

    first.react = freeze
    scene.enqueue()
    first.catch_up()
    assert len(first.met) == len(second.met) == 1
    assert second.view.delivered == 1
    assert second.view.owner == "node-2"
    scene.enqueue()
    first.catch_up()
    assert len(first.met) == 1


def test_lag_and_place_can_be_read(scene: Scene) -> None:
    watcher = watch(scene)
    assert (watcher.view.lag.value, watcher.view.oldest_unpassed_at) == (0, None)
    scene.enqueue_many(3)
    since = scene.now
    scene.wait(90)
    view = watcher.view
    assert (view.lag.value, view.oldest_unpassed_at) == (3, since)
    assert view.behind(scene.now) == timedelta(seconds=90)
    assert view.is_behind(scene.now)
    watcher.catch_up()
    assert (watcher.view.lag.value, watcher.view.token) == (0, "3")
    assert not watcher.view.is_behind(scene.now)
    assert watcher.view.last_delivered_at == scene.now


def test_a_bounded_lag_is_told_as_such(scene: Scene) -> None:
    watcher = watch(scene)
    scene.enqueue_many(1_001)
    assert str(watcher.view.lag) == "1,000+"


def test_an_observer_is_active_for_seven_days_after_its_last_registration(scene: Scene) -> None:
    watcher = watch(scene)
    scene.wait(ACTIVE_FOR.total_seconds() - 1)
    states = [watcher.view.state]
    scene.wait(1)
    states.append(watcher.view.state)
    scene.enqueue_many(5)
    watcher.register()
    states.append(watcher.view.state)
    assert states == [ObserverState.ACTIVE, ObserverState.UNREGISTERED, ObserverState.ACTIVE]
    assert watcher.view.skipped == 5
    job = scene.enqueue()
    watcher.catch_up()
    assert [row.job_id for row in watcher.met] == [job]


def test_a_retired_observer_is_called_no_more_and_stays_retired(scene: Scene) -> None:
    watcher, operator = watch(scene), Operator(scene.database)
    watcher.react = lambda *_: 1 / 0  # type: ignore[assignment]
    scene.enqueue_many(3)
    watcher.catch_up()
    assert watcher.view.pending.value == 3
    preview = operator.preview_retire_observer("bell")
    assert preview is not None
    assert "3 pending and 0 dead" in preview.reason
    answer = operator.retire_observer("bell", actor="ann")
    assert (answer.outcome, answer.given_up) == (RetireOutcome.RETIRED, 3)
    scene.enqueue()
    calls = len(watcher.met)
    watcher.catch_up()
    watcher.register()
    watcher.catch_up()
    assert len(watcher.met) == calls
    view = watcher.view
    assert (view.state, view.retired_by, view.skipped) == (ObserverState.RETIRED, "ann", 3)
    assert operator.retire_observer("bell", actor="ben").outcome is RetireOutcome.REFUSED
    assert operator.retire_observer("other", actor="ben").outcome is RetireOutcome.NOT_FOUND
    assert operator.preview_retire_observer("other") is None
    refused = operator.preview_retire_observer("bell")
    assert refused is not None
    assert not refused.allowed
    assert [row.action for row in scene.monitor.audit()] == ["retire_observer"]


def test_no_observer_is_registered_while_nothing_is_logged(scene: Scene) -> None:
    operator = Operator(scene.database)
    operator.set_history_policy(HistoryPolicy.OFF, actor="ann")
    with pytest.raises(HistoryOff, match="bell"):
        watch(scene)
    assert scene.monitor.observers() == ()
    operator.set_history_policy(HistoryPolicy.TRANSITIONS, actor="ann")
    watch(scene)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"name": ""}, InvalidValue),
        ({"name": "x" * 129}, ValueTooLarge),
        ({"name": "a\nb"}, InvalidValue),
        ({"states": ()}, InvalidValue),
        ({"states": ["done"]}, InvalidValue),
        ({"states": [3]}, InvalidValue),
        ({"wire_name": ""}, InvalidValue),
        ({"queue": "\0"}, InvalidValue),
        ({"start": "now"}, InvalidValue),
    ],
)
def test_a_malformed_observer_is_refused_at_the_call(
    changed: dict[str, object], error: type[Exception]
) -> None:
    given = {"name": "bell", "states": EVERY_STATE, "wire_name": None, "queue": None} | changed
    start = given.pop("start", "end")
    name, states = given.pop("name"), given.pop("states")
    with pytest.raises(error):
        checked_scope(name, states, start=start, **given)  # type: ignore[arg-type]


def test_states_may_be_given_as_words(scene: Scene) -> None:
    scope = checked_scope("bell", {"leased", "scheduled"}, wire_name=None, queue=None, start="end")
    assert scope.states == (S.SCHEDULED, S.LEASED)
    one = checked_scope("bell", "leased", wire_name=None, queue=None, start="end")
    assert one.states == (S.LEASED,)
    assert isinstance(watch(scene, "x", *scope.states), Watcher)
