"""The pages of schedules: next ticks, skipped ticks with their reason, and a trigger."""

from dataclasses import replace
from datetime import timedelta
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from latchwork import JobContext
from latchwork.maintenance.schedule_minter import ScheduleMinter
from latchwork_console.console import Permission
from latchwork_console.server import create_console
from tests.console.worlds import ADDRESS, HOSTILE, SAME_ORIGIN, World

JSON = {"Accept": "application/json"}
PATH = f"/schedule?schedule={quote(HOSTILE, safe='')}"


@pytest.fixture(autouse=True)
def _hostile_schedule(world: World) -> None:
    @world.app.job("backup")
    def backup(context: JobContext) -> None:
        """Only enqueued here."""

    world.app.client.set_schedule(
        HOSTILE, backup.bind(), cron="0 * * * *", zone="Europe/Berlin", tags=[HOSTILE]
    )


def test_a_schedule_is_listed_with_its_words_and_next_tick(world: World) -> None:
    page = world.client.get("/schedules").text
    assert "<script>alert" not in page
    assert "Every hour" in page or "every hour" in page
    (shape,) = world.client.get("/schedules", headers=JSON).json()["schedules"]
    assert shape["id"] == HOSTILE
    assert world.client.get(PATH, headers=JSON).json()["next_ticks"] == shape["next_ticks"]


def test_a_trigger_is_previewed_done_and_told(world: World) -> None:
    page = world.client.get(PATH).text
    assert "One backup job is enqueued to default, due now" in page
    answer = world.post("/schedules/trigger", schedule=HOSTILE)
    assert answer.status_code == 303
    after = world.client.get(answer.headers["location"]).text
    assert "Triggered: its job is enqueued, due now." in after
    assert "its runs must not overlap" in after
    job_id = world.client.get(PATH, headers=JSON).json()["ticks"][0]["job_id"]
    assert "triggered" in world.client.get(f"/jobs/{job_id}").text
    (row,) = world.app.monitor.audit(limit=1)
    assert (row.action, row.subject) == ("trigger_schedule", HOSTILE)
    again = world.client.post(
        "/schedules/trigger", data={"schedule": HOSTILE}, headers=SAME_ORIGIN | JSON
    )
    assert (again.status_code, again.json()["outcome"]) == (409, "refused")


def test_skipped_ticks_are_shown_with_their_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = world.app.database.clock
    world.app.operator.trigger_schedule(HOSTILE, actor="ann")
    for hours in (2, 4):
        later = clock.now() + timedelta(hours=hours)
        monkeypatch.setattr(clock, "now", lambda later=later: later)
        ScheduleMinter(world.app.database).run_once()
    page = world.client.get(PATH).text
    assert "skipped: no node was there in time" in page


def test_who_may_not_trigger_is_told_and_refused(world: World) -> None:
    console = create_console(world.app, permissions=lambda _: {Permission.VIEW})
    with TestClient(console, base_url=ADDRESS) as client:
        page = client.get(PATH).text
        assert "You do not have the permission to trigger schedules." in page
        assert "needs the permission to view sensitive content" in page
        assert "payload" not in client.get(PATH, headers=JSON).json()
        assert (
            client.post(
                "/schedules/trigger", data={"schedule": HOSTILE}, headers=SAME_ORIGIN
            ).status_code
            == 403
        )


@pytest.mark.parametrize(
    ("name", "status"), [("nobody", 404), ("x" * 200, 400), ("%00", 400), ("", 400)]
)
def test_an_unknown_schedule_is_not_found(world: World, name: str, status: int) -> None:
    assert world.client.get(f"/schedule?schedule={name}").status_code == status


@pytest.mark.parametrize("name", ["..", ".", "a//b", "/"])
def test_a_schedule_named_like_a_folder_is_reached(world: World, name: str) -> None:
    (known,) = (one.schedule for one in world.app.monitor.schedules())
    world.app.client.store_schedule(replace(known, id=name))
    parts = world.client.get("/schedules").text.split('href="/schedule?')[1:]
    addresses = ["/schedule?" + part.partition('"')[0] for part in parts]
    found = [world.client.get(one, headers=JSON).json()["id"] for one in addresses]
    assert sorted(found) == sorted([HOSTILE, name])
