"""The pages of observers and of the history policy, and every page while nothing is logged."""

import asyncio
from datetime import timedelta

import pytest
from markupsafe import escape
from starlette.testclient import TestClient

from latchwork.decisions.observers import BACK_OFF
from latchwork.decisions.states import HistoryPolicy, JobState
from latchwork.log_tail import LogTail
from latchwork.store.database import Database
from latchwork.views import History, TransitionView
from latchwork_console.broadcaster import Broadcaster
from latchwork_console.console import Permission
from latchwork_console.server import create_console
from latchwork_console.timeline_drawing import attempts_of, draw_timeline
from tests.console.test_timeline import FAILED_ONCE, START
from tests.console.worlds import ADDRESS, HOSTILE, SAME_ORIGIN, World
from tests.store.scene import Scene
from tests.store.watching import Watcher, watch

S = JobState
JSON = {"Accept": "application/json"}


@pytest.fixture
def broken(world: World) -> Watcher:
    """An observer with a hostile name and one dead delivery, whose error is hostile too."""
    database = Database(world.app.database.engine.url.render_as_string())
    scene = Scene(database)
    scene.now = world.store.now
    watcher = watch(scene, HOSTILE, S.SCHEDULED)
    watcher.react = fail
    scene.enqueue(HOSTILE)
    for _ in range(BACK_OFF.max_attempts):
        watcher.catch_up()
        scene.wait(BACK_OFF.cap_seconds)
    database.dispose()
    return watcher


def fail(*_: object) -> None:
    raise ConnectionError(HOSTILE)


def link_to(world: World) -> str:
    page = world.client.get("/observers").text
    return page.split('href="/observer?observer=', 1)[1].split('"', 1)[0]


def test_an_observer_is_listed_and_opened_whatever_its_name(world: World, broken: Watcher) -> None:
    page = world.client.get(f"/observer?observer={link_to(world)}")
    assert page.status_code == 200
    sent_back = f'name="observer" value="{escape(HOSTILE)}"'
    for text in (world.client.get("/observers").text, page.text.replace(sent_back, "")):
        assert "&lt;script&gt;alert" in text
        assert "\u202e" not in text
        assert "<script>alert" not in text
    assert "ConnectionError" in page.text
    assert "1 dead deliveries are given up" in page.text


def test_observers_have_a_json_twin(world: World, broken: Watcher) -> None:
    found = world.client.get("/observers", headers=JSON).json()
    assert found["history"] == {"policy": "transitions_and_failure_detail", "since": None}
    (one,) = found["observers"]
    assert (one["name"], one["state"], one["dead"]) == (HOSTILE, "active", 1)
    alone = world.client.get(f"/observer?observer={link_to(world)}", headers=JSON).json()
    (dead,) = alone["dead_deliveries"]
    assert (dead["failures"], dead["transition"]["wire_name"]) == (10, HOSTILE)
    assert world.client.get("/observer?observer=nobody").status_code == 404


def test_a_dead_delivery_is_replayed_from_its_page(world: World, broken: Watcher) -> None:
    (dead,) = world.app.monitor.dead_deliveries(HOSTILE)
    answer = world.post(f"/deliveries/{dead.id}/replay")
    assert answer.status_code == 303
    assert "The delivery is tried again." in world.client.get(answer.headers["location"]).text
    assert world.app.monitor.dead_deliveries(HOSTILE) == ()
    again = world.client.post(f"/deliveries/{dead.id}/replay", headers=SAME_ORIGIN | JSON)
    assert (again.status_code, again.json()["outcome"]) == (409, "refused")
    assert world.post("/deliveries/999/replay").status_code == 404


def test_an_observer_is_retired_from_its_page(world: World, broken: Watcher) -> None:
    address = "/observers/retire"
    answer = world.post(address, observer=HOSTILE)
    assert answer.status_code == 303
    page = world.client.get(answer.headers["location"]).text
    assert "The observer is retired." in page
    assert "It was retired by console:" in page
    again = world.client.post(address, data={"observer": HOSTILE}, headers=SAME_ORIGIN | JSON)
    assert (again.status_code, again.json()["outcome"]) == (409, "refused")
    assert world.post("/observers/retire", observer="nobody").status_code == 404


def test_the_history_policy_is_set_and_refused_while_observers_need_the_log(
    world: World, broken: Watcher
) -> None:
    refused = world.post("/history-policy", policy="off")
    assert "active observers need the log" in world.client.get(refused.headers["location"]).text
    done = world.post("/history-policy", policy="transitions")
    assert "The history policy is set." in world.client.get(done.headers["location"]).text
    assert world.app.monitor.history_policy().policy is HistoryPolicy.TRANSITIONS
    assert world.post("/history-policy", policy="some").status_code == 400
    answer = world.client.post(
        "/history-policy", data={"policy": "transitions"}, headers=SAME_ORIGIN | JSON
    )
    assert answer.json()["outcome"] == "unchanged"


def test_without_permission_nothing_is_offered_and_no_error_is_shown(
    world: World, broken: Watcher
) -> None:
    permissions = frozenset({Permission.VIEW})
    client = TestClient(
        create_console(world.app, permissions=lambda _: permissions), base_url=ADDRESS
    )
    page = client.get(f"/observer?observer={link_to(world)}").text
    assert "You do not have the permission to retire observers." in page
    assert "ConnectionError" not in page
    (one,) = client.get("/observers", headers=JSON).json()["observers"]
    assert one["last_error"] is None


def test_the_overview_tells_of_observers_in_trouble(world: World, broken: Watcher) -> None:
    codes = {one.code for one in world.app.monitor.attention()}
    assert {"observer_behind", "dead_deliveries"} >= codes & {"observer_behind", "dead_deliveries"}
    assert "dead_deliveries" in codes
    assert "Open observer" in world.client.get("/").text


PAGES_OF_A_JOB = ("/jobs/{}", "/jobs/{}/graph")
OFF_NOTE = "The history policy is off since"


def test_every_page_works_while_nothing_is_logged_and_says_so(world: World) -> None:
    world.app.operator.set_history_policy(HistoryPolicy.OFF, actor="ann")
    world.store.now = world.app.database.now()
    moved = world.store.in_state(S.DEAD_LETTERED)
    logged = world.jobs[S.SCHEDULED]
    world.store.end(logged)
    for job in (moved, logged):
        for path in PAGES_OF_A_JOB:
            assert world.client.get(path.format(job)).status_code == 200
        assert "because the history policy was off" in world.client.get(f"/jobs/{job}").text
    for path in ("/", "/log", f"/jobs/{moved}"):
        assert OFF_NOTE in world.client.get(path).text
    for path in ("/jobs", "/queues", "/nodes", "/observers", "/log?failing=1"):
        assert world.client.get(path).status_code == 200
    world.app.operator.set_history_policy(HistoryPolicy.TRANSITIONS, actor="ann")
    assert OFF_NOTE not in world.client.get("/log").text
    assert "because the history policy was off" in world.client.get(f"/jobs/{moved}").text


def test_live_regions_follow_the_counters_while_nothing_is_logged(world: World) -> None:
    world.app.operator.set_history_policy(HistoryPolicy.OFF, actor="ann")
    broadcaster: Broadcaster = world.client.app.state.console.broadcaster  # type: ignore[attr-defined]
    tail = LogTail(world.app)

    async def moved() -> bool:
        broadcaster._changed.clear()
        await broadcaster._poll_counters()
        return broadcaster._changed.is_set()

    assert asyncio.run(moved())
    assert not asyncio.run(moved())
    world.store.now = world.app.database.now()
    world.store.enqueue()
    assert asyncio.run(moved())
    assert list(tail.read()) == []
    world.app.operator.set_history_policy(HistoryPolicy.TRANSITIONS, actor="ann")
    world.store.enqueue()
    assert not asyncio.run(moved())


def test_what_was_not_logged_is_not_drawn() -> None:
    first, leased = FAILED_ONCE[:2]
    after_the_hole: TransitionView = FAILED_ONCE[3]
    hole = History((first, leased, after_the_hole), 0, unlogged=1)
    attempts = attempts_of(hole)
    assert (attempts[0].outcome, attempts[0].seconds(START)) == ("end not logged", 0.0)
    assert attempts[1].outcome == "running"
    ended_unseen = History((first, leased), 0, unlogged=1, logged_to_end=False)
    timeline = draw_timeline(ended_unseen, START + timedelta(hours=9))
    assert timeline is not None
    assert not timeline.live
    assert timeline.ends_at == leased.at
