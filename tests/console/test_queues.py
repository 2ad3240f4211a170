"""A queue's page with its gates, and the audit trail."""

from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from latchwork.decisions.states import JobState
from latchwork_console.console import Permission
from latchwork_console.pages.audit import detail_text
from latchwork_console.server import create_console
from tests.console.worlds import ADDRESS, HOSTILE, SAME_ORIGIN, World

JSON = {"Accept": "application/json"}
QUEUE = f"{HOSTILE} queue 0"
PATH = f"/queue?queue={quote(QUEUE, safe='')}"


def test_a_pause_from_the_form_is_told_on_the_queues_page(world: World) -> None:
    answer = world.post("/queues/pause", queue=QUEUE)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{PATH}&result=queue%3Apaused"
    page = world.client.get(answer.headers["location"]).text
    assert "Paused: none of its jobs is claimed any more." in page
    assert 'action="/queues/resume"' in page
    assert world.store.claim(QUEUE) == []
    (row,) = world.app.monitor.audit(limit=1)
    assert (row.action, row.subject) == ("pause_queue", QUEUE)
    assert row.actor.startswith("console:")
    world.post("/queues/resume", queue=QUEUE)
    assert len(world.store.claim(QUEUE)) == 1


def test_a_limit_is_weighed_set_and_lifted(world: World) -> None:
    page = world.client.get(f"{PATH}&limit=3").text
    assert "With a limit of 3: At most 3 of its jobs run at once, over all nodes; now 0." in page
    answer = world.post("/queues/limit", queue=QUEUE, limit="3")
    assert answer.headers["location"].endswith("result=queue%3Alimited")
    assert "0 of 3 slots held" in world.client.get(PATH).text
    assert "Without a limit: " in world.client.get(f"{PATH}&limit=").text
    assert world.post("/queues/limit", queue=QUEUE, limit="").status_code == 303
    again = world.post("/queues/limit", queue=QUEUE, limit="")
    assert "it was so already" in world.client.get(again.headers["location"]).text


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "many", "2147483648", "9" * 5000, "²"])
def test_a_limit_that_is_none_is_answered_with_a_sentence(world: World, limit: str) -> None:
    assert world.client.get(PATH, params={"queue": QUEUE, "limit": limit[:300]}).status_code == 400
    answer = world.post("/queues/limit", queue=QUEUE, limit=limit)
    assert answer.status_code == 400
    assert "whole number" in answer.text


@pytest.mark.parametrize("fields", [{}, {"queue": ""}, {"queue": "x" * 129}, {"queue": "a\0b"}])
def test_a_name_that_cannot_be_a_queues_is_refused(world: World, fields: dict[str, str]) -> None:
    assert world.post("/queues/pause", **fields).status_code == 400
    assert world.client.get("/queue", params=fields).status_code == 400


def test_a_queue_nobody_has_used_has_a_page_too(world: World) -> None:
    page = world.client.get("/queue?queue=later")
    assert page.status_code == 200
    assert "Nobody has used this queue yet." in page.text
    world.post("/queues/limit", queue="later", limit="2")
    shape = world.client.get("/queue?queue=later", headers=JSON).json()
    assert shape["queue"]["concurrency_limit"] == 2
    assert shape["previews"]["pause"]["allowed"] is True


def test_who_holds_the_slots_is_named(world: World) -> None:
    queue = world.store.row(world.jobs[JobState.LEASED]).queue
    world.post("/queues/limit", queue=queue, limit="1")
    page = world.client.get("/queue", params={"queue": queue}).text
    assert f"/jobs/{world.jobs[JobState.LEASED]}" in page
    assert "1 of 1 slots held" in page
    assert "full" in page


def test_programs_get_the_result_as_json(world: World) -> None:
    answer = world.client.post(
        "/queues/pause", data={"queue": "mail"}, headers=SAME_ORIGIN | JSON
    ).json()
    assert (answer["queue"], answer["outcome"]) == ("mail", "paused")
    assert answer["paused_by"].startswith("console:")


@pytest.mark.parametrize("path", ["/queues/pause", "/queues/resume", "/queues/limit"])
def test_who_may_only_look_is_refused(world: World, path: str) -> None:
    console = create_console(world.app, permissions=lambda _: {Permission.VIEW})
    viewer = TestClient(console, base_url=ADDRESS)
    answer = viewer.post(path, data={"queue": QUEUE, "limit": "1"}, headers=SAME_ORIGIN)
    assert answer.status_code == 403
    assert "You do not have the permission" in viewer.get(PATH).text
    # The world has cancelled a job and asked for nothing else.
    assert {row.action for row in world.app.monitor.audit()} == {"cancel"}


def test_the_audit_trail_says_who_did_what_to_what(world: World) -> None:
    world.post("/queues/limit", queue=QUEUE, limit="3")
    page = world.client.get("/audit").text
    assert "set limit" in page
    assert "limited; limit 3, was none" in page
    assert f"/jobs/{world.jobs[JobState.CANCELLED]}" in page
    found = world.client.get("/audit", params={"action": "cancel"}, headers=JSON).json()["audit"]
    assert [row["subject"] for row in found] == [str(world.jobs[JobState.CANCELLED])]
    assert world.client.get("/audit?actor=nobody", headers=JSON).json()["audit"] == []
    assert "No action matches" in world.client.get("/audit?actor=nobody").text


def test_the_audit_trail_is_paged(world: World) -> None:
    for number in range(1, 6):
        world.app.operator.set_limit("mail", number, actor="ann")
    first = world.client.get("/audit?actor=ann&limit=2", headers=JSON).json()
    assert [row["detail"]["limit"] for row in first["audit"]] == [5, 4]
    older = world.client.get(f"/audit?actor=ann&limit=2&before={first['next']}", headers=JSON)
    assert [row["detail"]["limit"] for row in older.json()["audit"]] == [3, 2]
    assert world.client.get("/audit?before=1&after=2").status_code == 400


def test_tags_of_late_are_suggested_without_a_script(world: World) -> None:
    world.store.enqueue(tags=(("tenant", "acme"), "a=b"))
    page = world.client.get("/jobs").text
    assert '<option value="tenant=acme"></option>' in page
    assert '<option value="=a=b"></option>' in page
    assert 'list="tags"' in page


def test_a_detail_reads_as_facts() -> None:
    detail: dict[str, object] = {
        "outcome": "not_found",
        "from": "dead_lettered",
        "scope": None,
        "jobs": [1, 2],
    }
    assert detail_text(detail) == "not found; was Dead-Lettered, scope none, jobs 1, 2"
    assert detail_text({}) == ""
