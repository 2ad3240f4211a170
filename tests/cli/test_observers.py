"""``latchwork observers`` and ``latchwork history``: what they say and what they do."""

from latchwork.application import Latchwork
from latchwork.decisions.observers import BACK_OFF
from latchwork.decisions.states import HistoryPolicy, JobState
from tests.cli.conftest import Call
from tests.store.scene import Scene
from tests.store.watching import Watcher, watch

S = JobState


def broken_observer(app: Latchwork) -> Watcher:
    """An observer with one dead delivery."""
    scene = Scene(app.database)
    watcher = watch(scene, "bell", S.SCHEDULED)
    watcher.react = lambda *_: 1 / 0  # type: ignore[assignment]
    scene.enqueue()
    for _ in range(BACK_OFF.max_attempts):
        watcher.catch_up()
        scene.wait(BACK_OFF.cap_seconds)
    return watcher


def test_observers_are_listed_and_shown(latchwork: Call, app: Latchwork) -> None:
    broken_observer(app)
    (one,) = latchwork("observers", "list", "--json").json
    assert (one["name"], one["states"], one["dead"]) == ("bell", ["scheduled"], 1)
    assert "bell" in latchwork("observers", "list").out
    shown = latchwork("observers", "show", "bell", "--json").json
    assert [dead["failures"] for dead in shown["dead_deliveries"]] == [10]
    assert "ZeroDivisionError" in latchwork("observers", "show", "bell").out
    unknown = latchwork("observers", "show", "other")
    assert (unknown.code, unknown.err) == (1, "latchwork: observer other is not known here\n")


def test_a_dead_delivery_is_replayed_once(latchwork: Call, app: Latchwork) -> None:
    broken_observer(app)
    (dead,) = app.monitor.dead_deliveries("bell")
    done = latchwork("observers", "replay", dead.id, "--actor", "anna")
    assert (done.code, done.out) == (0, f"{dead.id} is tried again by bell\n")
    again = latchwork("observers", "replay", dead.id, 999, "--json")
    assert again.code == 1
    assert [one["outcome"] for one in again.json] == ["refused", "not_found"]
    assert [row.actor for row in app.monitor.audit()] == ["anna"]


def test_an_observer_is_retired_once(latchwork: Call, app: Latchwork) -> None:
    broken_observer(app)
    assert latchwork("observers", "retire", "bell").out == "bell retired; deliveries given up: 1\n"
    again = latchwork("observers", "retire", "bell")
    assert (again.code, again.err) == (1, "latchwork: observer bell was retired before\n")
    unknown = latchwork("observers", "retire", "other", "--json")
    assert (unknown.code, unknown.json["outcome"]) == (1, "not_found")


def test_the_history_policy_is_shown_and_set(latchwork: Call, app: Latchwork) -> None:
    assert latchwork("history", "show", "--json").json == {
        "policy": "transitions_and_failure_detail",
        "since": None,
    }
    done = latchwork("history", "set", "transitions")
    assert (done.code, done.out) == (0, "the history policy is transitions\n")
    assert "transitions" in latchwork("history", "show").out
    assert app.monitor.history_policy().policy is HistoryPolicy.TRANSITIONS


def test_off_is_refused_while_observers_need_the_log(latchwork: Call, app: Latchwork) -> None:
    watch(Scene(app.database), "bell")
    refused = latchwork("history", "set", "off")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "latchwork: refused: these observers need the log: bell\n"
    as_json = latchwork("history", "set", "off", "--json")
    assert (as_json.code, as_json.json["observers"]) == (1, ["bell"])
    assert latchwork("history", "set", "some").code == 2
