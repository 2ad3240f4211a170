"""Requeue and cancel from a form: what they do, what they say, and where they lead."""

import re
from uuid import uuid4

import pytest

from latchwork.decisions.states import JobState
from latchwork.errors import StoreBusy
from latchwork_console.actions.results import Outcome, decode, encode
from tests.console.worlds import SAME_ORIGIN, World

S = JobState


def test_requeue_moves_the_job_and_is_told_on_its_page(world: World) -> None:
    job = world.jobs[S.DEAD_LETTERED]
    answer = world.post(f"/jobs/{job}/requeue")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"/jobs/{job}?result=")
    assert world.store.state(job) is S.SCHEDULED
    assert "1 job requeued." in world.client.get(answer.headers["location"]).text


def test_the_actor_is_the_user_of_the_operating_system(world: World) -> None:
    job = world.jobs[S.DEAD_LETTERED]
    world.post(f"/jobs/{job}/requeue")
    (row,) = world.app.monitor.audit_of_job(job)
    assert row.actor.startswith("console:")


def test_cancel_of_a_running_job_is_a_request(world: World) -> None:
    job = world.jobs[S.LEASED]
    answer = world.post(f"/jobs/{job}/cancel")
    assert "asked to stop" in world.client.get(answer.headers["location"]).text
    assert world.store.state(job) is S.LEASED


def test_a_refused_action_says_the_state_it_met(world: World) -> None:
    answer = world.post(f"/jobs/{world.jobs[S.SUCCEEDED]}/requeue")
    assert answer.status_code == 303
    page = world.client.get(answer.headers["location"]).text
    assert "Nothing was changed." in page
    assert "Succeeded; only Dead-Lettered and Quarantined jobs can be requeued" in page


def test_an_unknown_job_is_not_found(world: World) -> None:
    assert world.post(f"/jobs/{uuid4()}/cancel").status_code == 404


def test_selected_jobs_are_each_done_or_skipped_with_the_reason(world: World) -> None:
    selected = [str(world.jobs[state]) for state in S] + [str(uuid4())]
    answer = world.post(
        "/jobs/requeue", job=selected, back="queue=a%2Fb&state=leased", confirmed="yes"
    )
    assert answer.headers["location"].startswith("/jobs?state=leased&queue=a%2Fb&result=")
    page = world.client.get(answer.headers["location"]).text
    assert "2 jobs requeued." in page
    assert "1 job skipped: no longer stored" in page
    assert "1 job skipped: Leased" in page


def test_a_selection_is_shown_with_its_consequences_before_anything_is_done(world: World) -> None:
    child = world.store.enqueue(world.jobs[S.SCHEDULED])
    selected = [str(job) for job in world.jobs.values()] + [str(uuid4())]
    preview = world.post("/jobs/cancel", job=selected, back="state=scheduled")
    assert preview.status_code == 200
    text = preview.text
    assert "Cancel 8 selected jobs?" in text
    assert "Cancel 3 jobs</button>" in text
    assert "1 job skipped:</b> Succeeded; it had ended already" in text
    assert "1 job skipped:</b> no longer stored" in text
    assert "waiting jobs would be cancelled" in text
    assert 'href="/jobs?state=scheduled"' in text
    assert world.store.state(world.jobs[S.SCHEDULED]) is S.SCHEDULED
    fields = dict.fromkeys(re.findall(r'name="job" value="([^"]+)"', text))
    world.post("/jobs/cancel", job=list(fields), back="state=scheduled", confirmed="yes")
    assert world.store.state(world.jobs[S.SCHEDULED]) is S.CANCELLED
    assert world.store.state(child) is S.CANCELLED


def test_a_selection_of_which_nothing_qualifies_offers_no_button(world: World) -> None:
    preview = world.post("/jobs/requeue", job=[str(world.jobs[S.SUCCEEDED])], back="")
    assert "None of the selected jobs can be acted on" in preview.text
    assert '<button class="btn primary"' not in preview.text


def test_no_selection_changes_nothing_and_says_so(world: World) -> None:
    answer = world.post("/jobs/cancel", back="")
    assert "No job was selected" in world.client.get(answer.headers["location"]).text


@pytest.mark.parametrize(
    "back", ["//evil.example/", "https://evil.example", "?x=//evil", "\r\nX: y"]
)
def test_the_way_back_stays_in_the_console(world: World, back: str) -> None:
    answer = world.post("/jobs/cancel", job=str(uuid4()), back=back, confirmed="yes")
    assert answer.headers["location"].startswith("/jobs?result=")


def test_what_is_selected_has_bounds(world: World) -> None:
    assert world.post("/jobs/cancel", job=["x"]).status_code == 400
    assert world.post("/jobs/cancel", job=[str(uuid4()) for _ in range(210)]).status_code == 400


def test_an_action_as_json_answers_with_its_outcome(world: World) -> None:
    headers = SAME_ORIGIN | {"Accept": "application/json"}
    job = world.jobs[S.QUARANTINED]
    done = world.client.post(f"/jobs/{job}/requeue", headers=headers)
    assert done.json() == {"id": str(job), "outcome": "requeued", "state": "quarantined"}
    refused = world.client.post(f"/jobs/{job}/requeue", headers=headers)
    assert refused.status_code == 409
    assert refused.json()["state"] == "scheduled"


def test_a_busy_database_is_told_and_not_an_error_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise StoreBusy("busy")

    monkeypatch.setattr(world.app.operator, "requeue", busy)
    answer = world.post(f"/jobs/{world.jobs[S.DEAD_LETTERED]}/requeue")
    assert "database did not answer" in world.client.get(answer.headers["location"]).text


@pytest.mark.parametrize(
    "code",
    ["", "x", "requeue:<b>=1", "hack:requeued=1", "requeue:requeued=99999999", "requeue:evil=1"],
)
def test_a_made_up_code_shows_nothing(code: str) -> None:
    assert decode(code) is None


def test_a_code_is_read_back_as_it_was_written() -> None:
    message = decode(
        encode("cancel", [Outcome("cancelled", None), Outcome("refused", S.SUCCEEDED)])
    )
    assert message is not None
    assert message.worked
    assert message.sentence == "1 job cancelled."
    assert message.details == ("1 job skipped: Succeeded; it had ended already",)
