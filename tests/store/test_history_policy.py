"""How much the log keeps: three rungs, changed by an audited action, lowered by a switch."""

from typing import Any
from uuid import UUID

import pytest

from latchwork.decisions.states import HistoryPolicy, JobState
from latchwork.errors import InvalidValue
from latchwork.log_tail import LogTail
from latchwork.maintenance.expiry_sweeper import ExpirySweeper
from latchwork.observer_views import HistoryOutcome
from latchwork.operations import Operator
from latchwork.settings import Settings
from latchwork.store.database import Database
from tests.store.scene import Scene
from tests.store.test_log_tail import App
from tests.store.watching import watch

S = JobState
OFF, ROWS, ALL = HistoryPolicy


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


@pytest.fixture
def operator(scene: Scene) -> Operator:
    return Operator(scene.database)


def fail(scene: Scene) -> UUID:
    scene.enqueue()
    return scene.run(S.DEAD_LETTERED)


def detail(scene: Scene, job_id: UUID) -> str | None:
    return scene.monitor.history(job_id).transitions[-1].failure_detail


def test_everything_is_kept_until_somebody_says_otherwise(scene: Scene) -> None:
    assert (scene.monitor.history_policy().policy, scene.monitor.history_policy().since) == (
        ALL,
        None,
    )
    assert detail(scene, fail(scene)) == "Traceback ..."


def test_without_detail_the_rows_are_kept_without_it(scene: Scene, operator: Operator) -> None:
    assert operator.set_history_policy(ROWS, actor="ann").outcome is HistoryOutcome.CHANGED
    assert scene.monitor.history_policy().since == scene.now
    assert scene.monitor.history_policy().off_since is None
    job = fail(scene)
    assert [row.state for row in scene.monitor.history(job).transitions][-1] is S.DEAD_LETTERED
    assert detail(scene, job) is None


def test_off_leaves_a_hole_and_ordinals_count_on(scene: Scene, operator: Operator) -> None:
    job = scene.enqueue()
    operator.set_history_policy(OFF, actor="ann")
    assert scene.monitor.history_policy().off_since == scene.now
    scene.wait(1)
    scene.run(S.SCHEDULED)
    unseen = scene.enqueue("ship")
    scene.wait(1)
    operator.set_history_policy(ALL, actor="ann")
    scene.wait(1)
    scene.run(S.SUCCEEDED)
    assert [row.ordinal for row in scene.monitor.history(job).transitions] == [0, 3, 4]
    assert scene.monitor.history(unseen).transitions == ()
    found = scene.monitor.job(job)
    assert found is not None
    assert found.state is S.SUCCEEDED


def test_off_everything_but_the_log_goes_on(scene: Scene, operator: Operator) -> None:
    operator.set_history_policy(OFF, actor="ann")
    tail = LogTail(App(scene.database))
    parent = scene.enqueue()
    child = scene.enqueue(parents=(parent,))
    failed = scene.run(S.DEAD_LETTERED)
    assert failed == parent
    scene.requeue(parent)
    assert scene.monitor.counts().by_state[S.SCHEDULED] == 1
    assert scene.monitor.counts().by_state[S.CANCELLED] == 1
    assert [row.action for row in scene.monitor.audit_of_job(parent)] == ["requeue"]
    for job in (parent, child):
        assert scene.monitor.explain(job) is not None
        assert scene.monitor.detail(job) is not None
        assert scene.monitor.graph(job) is not None
    assert scene.monitor.transitions().transitions == ()
    assert scene.monitor.transitions_at(scene.now).transitions == ()
    assert list(tail.read()) == []


def test_off_is_refused_while_an_observer_is_active(scene: Scene, operator: Operator) -> None:
    for name in ("a", "b", "c", "d"):
        watch(scene, name)
    answer = operator.set_history_policy(OFF, actor="ann")
    assert (answer.outcome, answer.policy) == (HistoryOutcome.REFUSED, ALL)
    assert answer.observers == ("a", "b", "c", "d")
    preview = operator.preview_set_history_policy(OFF)
    assert not preview.allowed
    assert "a, b, c and 1 more" in preview.reason
    assert scene.monitor.audit() == ()
    for name in answer.observers:
        operator.retire_observer(name, actor="ann")
    assert operator.preview_set_history_policy(OFF).allowed
    assert operator.set_history_policy(OFF, actor="ann").outcome is HistoryOutcome.CHANGED


def test_the_policy_in_force_is_no_change_and_leaves_no_audit_row(
    scene: Scene, operator: Operator
) -> None:
    assert operator.set_history_policy(ALL, actor="ann").outcome is HistoryOutcome.UNCHANGED
    assert not operator.preview_set_history_policy(ALL).allowed
    assert scene.monitor.audit() == ()
    operator.set_history_policy(ROWS, actor="ann")
    (row,) = scene.monitor.audit()
    assert (row.action, row.actor) == ("set_history_policy", "ann")
    assert row.detail == {"from": ALL.value, "to": ROWS.value}


@pytest.mark.parametrize("policy", ["none", 1, None])
def test_a_policy_that_is_none_is_refused(operator: Operator, policy: Any) -> None:
    with pytest.raises(InvalidValue):
        operator.set_history_policy(policy, actor="ann")


def test_the_switch_leaves_no_text_of_a_lapse(scene: Scene) -> None:
    job = scene.enqueue()
    scene.claim()
    scene.database.settings = Settings(disable_failure_detail=True)
    for _ in range(10):
        scene.wait(1_000)
        ExpirySweeper(scene.database, 1).run_once()
        scene.wait(1_000)
        scene.claim()
    found = scene.monitor.job(job)
    assert found is not None
    assert found.cause is not None
    assert (found.state, found.cause.code, found.cause.text) == (
        S.DEAD_LETTERED,
        "lease_lapsed",
        None,
    )
