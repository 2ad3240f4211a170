"""Workflows on the console: what the pages say, and what their forms do."""

import re
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
from starlette.testclient import TestClient

from latchwork.decisions.states import JobState
from latchwork.errors import StoreBusy
from latchwork.workflows import StartedWorkflow, Workflow
from latchwork_console.console import Permission
from latchwork_console.server import create_console
from tests.console.worlds import ADDRESS, HOSTILE, World
from tests.store.workflow_scene import Flow, call

S = JobState
JSON = {"Accept": "application/json"}


@dataclass
class Failed:
    """A failed workflow with hostile names, and what is around it."""

    flow: Flow
    started: StartedWorkflow
    path: str


@pytest.fixture
def failed(world: World) -> Failed:
    flow = Flow(world.store)
    workflow = Workflow(HOSTILE, input={"note": HOSTILE})
    workflow.add("pack", call()).add(HOSTILE, call(), after=["pack"])
    workflow.add("label", call(), after=[HOSTILE])
    started = flow.client.start_workflow(workflow)
    flow.end(started.jobs["pack"])
    flow.end(started.jobs[HOSTILE], S.DEAD_LETTERED)
    return Failed(flow, started, f"/workflows/{started.id}")


def test_the_listing_tells_status_progress_and_name(world: World, failed: Failed) -> None:
    running = failed.flow.start(a="")
    page = world.client.get("/workflows").text
    row = page.split(f'id="workflow-{failed.started.id}"')[1].split("</tr>")[0]
    assert "<span>Failed</span>" in row
    assert 'aria-label="1 Succeeded, 1 Cancelled, 1 Dead-Lettered"' in row
    assert "<script>alert" not in page
    only = world.client.get("/workflows?status=running").text
    assert str(running.id) in only
    assert str(failed.started.id) not in only
    named = world.client.get("/workflows", params={"name": HOSTILE}).text
    assert str(running.id) not in named
    assert str(failed.started.id) in named


def test_the_listing_pages_both_ways(world: World, failed: Failed) -> None:
    for _ in range(31):
        failed.flow.start(a="")
    first = world.client.get("/workflows").text
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older
    second = world.client.get(older[1].replace("&amp;", "&")).text
    assert str(failed.started.id) in second
    assert 'rel="prev"' in second


def test_an_empty_listing_says_why(world: World) -> None:
    assert "No workflow is stored." in world.client.get("/workflows").text
    assert "No workflow matches." in world.client.get("/workflows?status=failed").text
    assert world.client.get("/workflows?status=ended").status_code == 400
    assert world.client.get("/workflows?page=x").status_code == 400


def test_the_page_shows_graph_input_and_previews(world: World, failed: Failed) -> None:
    outside = failed.flow.store.enqueue(failed.started.jobs["label"])
    page = world.client.get(failed.path).text
    for job_id in failed.started.jobs.values():
        assert f'id="node-{job_id}"' in page
    assert str(outside) in page.split('id="workflow-actions"')[1]
    assert "2 steps would move." in page
    assert "3 steps would move." in page
    assert "3 steps would be enqueued." in page
    assert "Every step of the workflow has ended." in page
    assert "&lt;script&gt;" in page.split('id="workflow-input"')[1]
    assert "<script>alert" not in page


def test_a_job_leads_to_its_workflow_and_back(world: World, failed: Failed) -> None:
    job_id = failed.started.jobs["label"]
    assert f'href="{failed.path}"' in world.client.get(f"/jobs/{job_id}").text
    selected = world.client.get(failed.path, params={"job": str(job_id)}).text
    panel = selected.split('id="graph-panel"')[1]
    assert f'href="/jobs/{job_id}"' in panel
    other = world.client.get(failed.path, params={"job": str(uuid4())})
    assert other.status_code == 404


@pytest.mark.parametrize(("scope", "moved"), [("unfinished", 2), ("downstream", 2), ("all", 3)])
def test_retry_moves_its_scope_and_is_told(
    world: World, failed: Failed, scope: str, moved: int
) -> None:
    answer = world.post(f"{failed.path}/retry", scope=scope)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"{failed.path}?result=")
    page = world.client.get(answer.headers["location"]).text
    assert "The steps of the chosen scope run again." in page
    assert "Retry workflow" in page.split('id="workflow-facts"')[1]
    states = failed.flow.states(failed.started.jobs).values()
    assert sum(not state.terminal for state in states) == moved
    refused = world.post(f"{failed.path}/retry", scope=scope)
    told = world.client.get(refused.headers["location"]).text
    assert "retried once all its steps have ended" in told
    assert "Not ended:" in told
    (row, *_) = world.app.monitor.audit(limit=1)
    assert row.actor.startswith("console:")


def test_restart_leads_to_the_new_workflow_linked_both_ways(world: World, failed: Failed) -> None:
    answer = world.post(f"{failed.path}/restart")
    place = answer.headers["location"].partition("?")[0]
    assert place != failed.path
    new = world.client.get(answer.headers["location"]).text
    assert "This is the new workflow" in new
    assert f'href="{failed.path}"' in new
    assert f'href="{place}"' in world.client.get(failed.path).text


def test_cancel_stops_what_is_live(world: World, failed: Failed) -> None:
    started = failed.flow.start(a="", b="a")
    path = f"/workflows/{started.id}"
    assert "2 steps would be cancelled at once." in world.client.get(path).text
    answer = world.post(f"{path}/cancel")
    assert "no step is left to run" in world.client.get(answer.headers["location"]).text
    assert set(failed.flow.states(started.jobs).values()) == {S.CANCELLED}
    again = world.post(f"{path}/cancel")
    assert "every step had ended" in world.client.get(again.headers["location"]).text


def test_the_same_addresses_answer_json(world: World, failed: Failed) -> None:
    (one,) = world.client.get("/workflows", headers=JSON).json()["workflows"]
    assert (one["id"], one["status"], one["name"]) == (str(failed.started.id), "failed", HOSTILE)
    shape = world.client.get(failed.path, headers=JSON).json()
    assert [member["step"] for member in shape["members"]] == ["pack", HOSTILE, "label"]
    assert shape["input"] == world.client.get(f"{failed.path}/input").text

    def post(action: str) -> tuple[int, dict[str, object]]:
        headers = JSON | {"Sec-Fetch-Site": "same-origin"}
        answer = world.client.post(f"{failed.path}/{action}", headers=headers)
        return answer.status_code, answer.json()

    status, retried = post("retry")
    assert (status, retried["outcome"], retried["moved"]) == (200, "retried", 2)
    status, refused = post("retry")
    assert (status, refused["outcome"]) == (409, "refused")
    status, cancelled = post("cancel")
    assert (status, cancelled["cancelled"]) == (200, 2)
    status, restarted = post("restart")
    assert status == 200
    assert world.app.monitor.workflow(UUID(str(restarted["workflow_id"])))


@pytest.mark.parametrize("action", ["retry", "restart", "cancel"])
def test_unknown_workflows_and_wrong_requests_are_refused(
    world: World, failed: Failed, action: str
) -> None:
    unknown = f"/workflows/{uuid4()}"
    assert world.client.get(unknown).status_code == 404
    assert world.post(f"{unknown}/{action}").status_code == 404
    assert world.client.post(f"{failed.path}/{action}").status_code == 403  # not from our page
    assert world.post(f"{failed.path}/retry", scope="some").status_code == 400
    assert failed.flow.store.state(failed.started.jobs["label"]) is S.CANCELLED


def test_a_database_that_does_not_answer_is_told(
    world: World, failed: Failed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise StoreBusy("busy")

    monkeypatch.setattr(world.app.operator, "cancel_workflow", refuse)
    answer = world.post(f"{failed.path}/cancel")
    assert "The database did not answer" in world.client.get(answer.headers["location"]).text


def test_without_permission_actions_are_disabled_and_the_input_is_hidden(
    world: World, failed: Failed
) -> None:
    console = create_console(world.app, permissions=lambda _: frozenset({Permission.VIEW}))
    with TestClient(console, base_url=ADDRESS, follow_redirects=False) as client:
        page = client.get(failed.path).text
        actions = page.split('id="workflow-actions"')[1].split("</section>")[0]
        assert actions.count("<button") == actions.count(" disabled") == 5
        assert "You do not have the permission to retry workflows." in actions
        assert "Hidden: it needs the permission" in page.split('id="workflow-input"')[1]
        assert client.get(failed.path, headers=JSON).json()["input"] is None
        assert client.get(f"{failed.path}/input").status_code == 403
        for action in ("retry", "restart", "cancel"):
            answer = client.post(
                f"{failed.path}/{action}", headers={"Sec-Fetch-Site": "same-origin"}
            )
            assert answer.status_code == 403
