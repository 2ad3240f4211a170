"""The pages of one job and of its graph, with hostile names and without every permission."""

from uuid import UUID, uuid4

import pytest
from starlette.testclient import TestClient

from latchwork.decisions.states import JobState
from latchwork_console.broadcaster import Channel
from latchwork_console.console import Permission
from latchwork_console.graph_folding import BOXES_PER_RANK_MAX
from latchwork_console.pages import graph, job
from latchwork_console.server import create_console
from tests.console.worlds import ADDRESS, World

JSON = {"Accept": "application/json"}


def client_with(world: World, *permissions: Permission) -> TestClient:
    """A client of a console whose people have these permissions only."""
    console = create_console(world.app, permissions=lambda _: frozenset(permissions))
    return TestClient(console, base_url=ADDRESS)


@pytest.mark.parametrize("state", list(JobState))
@pytest.mark.parametrize("page", ["", "/graph"])
def test_hostile_names_are_shown_and_do_nothing(world: World, state: JobState, page: str) -> None:
    answer = world.client.get(f"/jobs/{world.jobs[state]}{page}")
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert "\u202e" not in answer.text
    assert "&lt;script&gt;alert" in answer.text
    assert " style=" not in answer.text
    assert state.label in answer.text


def test_a_payload_is_given_out_byte_for_byte_and_shown_with_its_numbers_whole(
    world: World,
) -> None:
    text = '{"id":12345678901234567890123,  "price":1.10,"name":"</pre><script>\\u0000"}'
    stored = world.store.enqueue(payload=text)
    raw = world.client.get(f"/jobs/{stored}/payload")
    assert raw.text == text
    assert raw.headers["content-type"].startswith("text/plain")
    assert raw.headers["x-content-type-options"] == "nosniff"
    page = world.client.get(f"/jobs/{stored}").text
    assert "&#34;id&#34;: 12345678901234567890123," in page
    assert "&lt;/pre&gt;&lt;script&gt;\\u0000" in page


def test_a_large_payload_is_folded_with_its_size(world: World) -> None:
    stored = world.store.enqueue(payload=f'["{"a" * 9_000}"]')
    page = world.client.get(f"/jobs/{stored}").text
    assert "Show 9,004 bytes" in page


def test_without_the_permission_nothing_sensitive_leaves_the_server(world: World) -> None:
    stored = world.jobs[JobState.DEAD_LETTERED]
    secret = world.store.enqueue(payload='"s3cret"')
    client = client_with(world, Permission.VIEW)
    assert "s3cret" not in client.get(f"/jobs/{secret}").text
    assert client.get(f"/jobs/{secret}/payload").status_code == 403
    assert client.get(f"/jobs/{secret}/output").status_code == 403
    shape = client.get(f"/jobs/{stored}", headers=JSON).json()
    assert "payload" not in shape
    assert shape["cause"]["text"] is None
    assert client.get(f"/jobs/{stored}").text.count(" disabled") == 2


def test_an_action_that_is_not_legal_is_disabled_and_says_why(world: World) -> None:
    page = world.client.get(f"/jobs/{world.jobs[JobState.SUCCEEDED]}").text
    assert page.count(" disabled") == 2
    assert "The job has ended: it is Succeeded." in page
    assert "Only Dead-Lettered and Quarantined jobs can be requeued" in page


def test_a_cancel_is_told_from_its_request_to_its_end(world: World) -> None:
    stored = world.jobs[JobState.LEASED]
    world.app.operator.cancel(stored, actor="ann")
    page = world.client.get(f"/jobs/{stored}").text
    assert "asked" in page
    assert "not delivered yet" in page
    assert "Operator actions" in page


def test_the_same_addresses_answer_json(world: World) -> None:
    parent = world.jobs[JobState.SCHEDULED]
    shape = world.client.get(f"/jobs/{parent}", headers=JSON).json()
    assert (shape["id"], shape["state"]) == (str(parent), "scheduled")
    drawn = world.client.get(f"/jobs/{parent}/graph", headers=JSON).json()
    child = str(world.jobs[JobState.AWAITING_PARENT])
    assert {"parent": str(parent), "child": child, "open": True} in drawn["edges"]


@pytest.mark.parametrize("page", ["", "/graph", "/payload", "/output"])
def test_an_unknown_job_is_not_found(world: World, page: str) -> None:
    assert world.client.get(f"/jobs/{uuid4()}{page}").status_code == 404


def test_a_selection_that_is_no_job_is_refused(world: World) -> None:
    address = f"/jobs/{world.jobs[JobState.SCHEDULED]}/graph"
    assert world.client.get(f"{address}?job=x").status_code == 400
    assert world.client.get(f"{address}?job={uuid4()}").status_code == 404


def test_a_graph_too_wide_to_draw_says_what_is_left_out(world: World) -> None:
    parent = world.store.enqueue()
    for number in range(BOXES_PER_RANK_MAX + 5):
        world.store.enqueue(parent, wire_name=f"kind-{number}")
    page = world.client.get(f"/jobs/{parent}/graph").text
    assert "5 more jobs not drawn" in page
    assert page.count('id="node-') == 1 + BOXES_PER_RANK_MAX


@pytest.mark.parametrize("subject", ["", "x", str(UUID(int=1))])
def test_a_stream_of_no_job_has_nothing_to_say(world: World, subject: str) -> None:
    console = world.client.app.state.console  # type: ignore[attr-defined]
    channel = Channel("job", subject, "", frozenset(Permission))
    around = console.broadcaster.surroundings(channel)
    assert job.render_regions(console, around, subject) == ""
    assert graph.render_regions(console, around, subject) == ""
