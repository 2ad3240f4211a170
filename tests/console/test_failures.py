"""The pages of failures and operations, and acting on all jobs of a filter or cause."""

import re
import threading
from collections.abc import Collection
from uuid import UUID, uuid4

import pytest
from starlette.testclient import TestClient

from latchwork.application import Latchwork
from latchwork.bulk_views import BulkOperation, BulkState
from latchwork.decisions.states import JobState
from latchwork.maintenance.bulk_runner import BulkRunner
from latchwork.maintenance.failure_grouper import FailureGrouper
from latchwork.views import JobFilter
from latchwork_console.console import Permission
from latchwork_console.rendering import Surroundings
from latchwork_console.routes import LIVE_VIEWS
from latchwork_console.server import create_console
from tests.console.worlds import ADDRESS, SAME_ORIGIN, World

S = JobState
JSON = {"Accept": "application/json"}


@pytest.fixture(autouse=True)
def _no_upkeep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The console's services stand still: the tests do their steps."""
    monkeypatch.setattr(Latchwork, "upkeep", lambda _: ())


def sort(world: World) -> str:
    """Let the sweep sort the failures; the key of the dead-lettered job's group."""
    while FailureGrouper(world.app.database).run_once():
        pass
    key: str = world.store.row(world.jobs[S.DEAD_LETTERED]).cause_group
    return key


def work_off(world: World, runner: BulkRunner | None = None) -> None:
    """Let a service work off what there is to do."""
    runner = runner or BulkRunner(world.app.database)
    while runner.run_once():
        pass


def only_operation(world: World) -> BulkOperation:
    """The one operation there is."""
    (operation,) = world.app.monitor.bulk_operations()
    return operation


def as_somebody(world: World, *permissions: Permission) -> TestClient:
    """A client with these permissions alone."""

    def have(_: object) -> Collection[Permission]:
        return permissions

    console = create_console(world.app, permissions=have)
    return TestClient(console, base_url=ADDRESS, follow_redirects=False)


def test_failures_are_shown_by_cause_with_a_trend_and_their_jobs(world: World) -> None:
    key = sort(world)
    page = world.client.get("/failures").text
    assert page.count('<tr id="failure-') == 2
    assert "1 failure in the last 24 hours" in page
    assert f'href="/jobs?group={key}"' in page
    listing = world.client.get(f"/jobs?group={key}", headers=JSON).json()["jobs"]
    assert [job["id"] for job in listing] == [str(world.jobs[S.DEAD_LETTERED])]
    assert "Remove the filter group" in world.client.get(f"/jobs?group={key}").text


def test_hostile_causes_stay_text(world: World) -> None:
    key = sort(world)
    for path in ("/failures", f"/failures/{key}"):
        text = world.client.get(path).text
        assert "<script>alert" not in text
        assert "\u202e" not in re.sub(r'value="[^"]*"', "", text)


def test_the_kind_of_message_is_sensitive_and_the_type_is_not(world: World) -> None:
    key = sort(world)
    viewer = as_somebody(world, Permission.VIEW)
    for path in ("/failures", f"/failures/{key}"):
        text = viewer.get(path).text
        assert "not shown to you" in text
    shape = viewer.get(f"/failures/{key}", headers=JSON).json()
    assert (shape["message"], shape["sample"]["cause"]["text"]) == (None, None)
    assert shape["cause_type"]
    assert viewer.get("/failures", headers=JSON).json()["groups"][0]["message"] is None
    full = world.client.get(f"/failures/{key}", headers=JSON).json()
    assert full["message"]


def test_failures_that_are_not_sorted_yet_are_told(world: World) -> None:
    assert "2 failed jobs are not sorted yet" in world.client.get("/failures").text


def test_an_unknown_group_or_operation_is_not_found(world: World) -> None:
    assert world.client.get("/failures/nothing").status_code == 404
    assert world.post("/failures/nothing/requeue").status_code == 404
    assert world.client.get(f"/operations/{uuid4()}").status_code == 404
    assert world.post(f"/operations/{uuid4()}/stop").status_code == 404
    assert world.client.get("/failures?page=x").status_code == 400


def test_one_of_a_group_goes_first_and_the_rest_on_the_operators_word(world: World) -> None:
    twins = [world.store.enqueue(wire_name="twin") for _ in range(2)]
    for twin in twins:
        world.store.end(twin, S.QUARANTINED)
    sort(world)
    key = world.store.row(twins[0]).cause_group
    assert "Requeue one first" in world.client.get(f"/failures/{key}").text
    answer = world.post(f"/failures/{key}/requeue")
    assert answer.status_code == 303
    place = answer.headers["location"]
    assert place == f"/operations/{only_operation(world).id}"
    work_off(world)
    page = world.client.get(place).text
    assert "One went first. 1 job is waiting for your word." in page
    assert "It is due and no node has taken it yet" in page
    assert "Requeue the other 1" in page
    told = world.post(f"{place}/continue")
    assert "The rest follows." in world.client.get(told.headers["location"]).text
    work_off(world)
    assert only_operation(world).state is BulkState.FINISHED
    refused = world.post(f"{place}/continue")
    assert "Nothing was changed" in world.client.get(refused.headers["location"]).text


@pytest.mark.parametrize(
    ("end", "words"),
    [(S.SUCCEEDED, "the cause seems mended"), (S.DEAD_LETTERED, "It failed again")],
)
def test_the_canarys_outcome_is_shown(world: World, end: JobState, words: str) -> None:
    key = sort(world)
    place = world.post(f"/failures/{key}/requeue").headers["location"]
    work_off(world)
    (member,) = world.app.monitor.bulk_members(only_operation(world).id)
    world.store.wait(60)
    world.store.end(member.job_id, end)
    # Of one job there is no rest: the operation is over and the job itself tells.
    assert only_operation(world).state is BulkState.FINISHED
    assert words in world.client.get(place).text


def test_all_of_a_group_is_requeued_when_asked(world: World) -> None:
    key = sort(world)
    world.post(f"/failures/{key}/requeue", all="yes")
    work_off(world)
    assert only_operation(world).allowed is None
    assert world.store.state(world.jobs[S.DEAD_LETTERED]) is S.SCHEDULED


def test_all_matching_is_previewed_then_begun_and_told_member_by_member(world: World) -> None:
    waiting = world.store.enqueue(wire_name="w", queue="q/1")
    world.store.enqueue(waiting)
    back = "queue=q%2F1&state=scheduled"
    page = world.client.get(f"/jobs?{back}").text
    assert 'formaction="/jobs/cancel-matching"' in page
    preview = world.post("/jobs/cancel-matching", back=back, job=[str(uuid4())])
    assert preview.status_code == 200
    assert "Cancel all 1 matching job?" in preview.text
    assert "Up to 1 waiting job would be cancelled with it" in preview.text
    assert world.app.monitor.bulk_operations() == ()
    begun = world.post("/jobs/cancel-matching", back=back, confirmed="yes")
    assert begun.status_code == 303
    work_off(world)
    assert world.store.state(waiting) is S.CANCELLED
    shown = world.client.get(begun.headers["location"]).text
    assert "1 of 1 job tried." in shown
    assert "<b>1</b> cancelled" in shown


def test_a_filter_without_a_legal_state_offers_no_button(world: World) -> None:
    preview = world.post("/jobs/requeue-matching", back="state=succeeded")
    assert "no such job can be requeued" in preview.text
    assert '<button class="btn primary"' not in preview.text
    refused = world.post("/jobs/requeue-matching", back="state=succeeded", confirmed="yes")
    assert refused.status_code == 400


def test_an_empty_filter_says_that_it_means_every_job(world: World) -> None:
    assert "every job in these states" in world.post("/jobs/cancel-matching", back="").text


def test_what_was_skipped_is_told_with_the_reason(world: World) -> None:
    begun = world.post("/jobs/requeue-matching", back="state=dead_lettered", confirmed="yes")
    runner = BulkRunner(world.app.database)
    runner.run_once()  # lists them
    world.store.requeue(world.jobs[S.DEAD_LETTERED])
    work_off(world, runner)
    page = world.client.get(begun.headers["location"]).text
    assert "skipped: Scheduled; only Dead-Lettered and Quarantined jobs can be requeued" in page


def test_while_nobody_is_at_it_the_page_says_so(world: World) -> None:
    begun = world.post("/jobs/requeue-matching", back="state=dead_lettered", confirmed="yes")
    page = world.client.get(begun.headers["location"]).text
    assert "nobody is at it this moment; the next node or console takes it up" in page


def test_only_who_may_do_what_it_does_may_stop_it(world: World) -> None:
    world.app.operator.cancel_matching(_filter(), actor="ann")
    place = f"/operations/{only_operation(world).id}"
    other = as_somebody(world, Permission.VIEW, Permission.REQUEUE)
    assert other.post(f"{place}/stop", headers=SAME_ORIGIN).status_code == 403
    assert "you cannot stop this" in other.get(place).text
    mine = as_somebody(world, Permission.VIEW, Permission.CANCEL)
    assert mine.post(f"{place}/stop", headers=SAME_ORIGIN).status_code == 303
    assert only_operation(world).state is BulkState.STOPPED


@pytest.mark.parametrize("path", ["/failures/{key}/requeue", "/jobs/requeue-matching"])
def test_requeueing_needs_its_permission(world: World, path: str) -> None:
    viewer = as_somebody(world, Permission.VIEW, Permission.CANCEL)
    address = path.format(key=sort(world))
    assert viewer.post(address, headers=SAME_ORIGIN).status_code == 403


def test_operations_as_json_have_their_members(world: World) -> None:
    headers = SAME_ORIGIN | JSON
    form = {"back": "state=dead_lettered"}
    begun = world.client.post("/jobs/requeue-matching", data=form, headers=headers)
    assert begun.status_code == 202
    work_off(world)
    place = f"/operations/{begun.json()['id']}"
    shape = world.client.get(place, headers=JSON).json()
    assert (shape["state"], shape["done"]) == ("finished", 1)
    (member,) = shape["members"]
    assert UUID(member["job_id"]) == world.jobs[S.DEAD_LETTERED]
    listing = world.client.get("/operations", headers=JSON).json()["operations"]
    assert [one["id"] for one in listing] == [shape["id"]]
    stopped = world.client.post(f"{place}/stop", headers=headers)
    assert (stopped.status_code, stopped.json()["outcome"]) == (409, "refused")


def test_members_are_paged(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latchwork_console.pages.operations.PAGE_MEMBERS", 2)
    for _ in range(3):
        world.store.enqueue(queue="many")
    begun = world.post("/jobs/cancel-matching", back="queue=many", confirmed="yes")
    work_off(world)
    place = begun.headers["location"]
    first = world.client.get(place).text
    assert f'href="{place}?after=2"' in first
    second = world.client.get(f"{place}?after=2", headers=JSON).json()["members"]
    assert [one["number"] for one in second] == [3]


def test_empty_pages_say_why_they_are_empty(sqlite_url: str) -> None:
    app = Latchwork(sqlite_url)
    client = TestClient(create_console(app), base_url=ADDRESS)
    assert "Nothing has failed for good" in client.get("/failures").text
    assert "No operation has been begun lately" in client.get("/operations").text
    app.database.dispose()


def _filter() -> JobFilter:
    return JobFilter(states=(S.SCHEDULED,))


def test_a_console_without_any_node_works_it_off(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    finished = threading.Event()
    step = BulkRunner.run_once

    def note(runner: BulkRunner) -> bool:
        more = step(runner)
        if any(one.finished_at for one in app.monitor.bulk_operations()):
            finished.set()
        return more

    monkeypatch.setattr(BulkRunner, "run_once", note)
    app = Latchwork(sqlite_url)
    with TestClient(create_console(app), base_url=ADDRESS) as client:
        form = {"back": "queue=nobody", "confirmed": "yes"}
        client.post("/jobs/cancel-matching", data=form, headers=SAME_ORIGIN)
        assert finished.wait(20)
    app.database.dispose()


@pytest.mark.parametrize("view", ["failures", "operation"])
def test_the_live_regions_say_what_the_page_says(world: World, view: str) -> None:
    key = sort(world)
    world.post(f"/failures/{key}/requeue")
    work_off(world)
    operation = only_operation(world)
    console = world.client.app.state.console  # type: ignore[attr-defined]
    around = Surroundings("", console.now(), frozenset(Permission), "here", None)
    regions = LIVE_VIEWS[view].regions
    assert regions is not None
    told = regions(console, around, str(operation.id))
    place = "/failures" if view == "failures" else f"/operations/{operation.id}"
    page = world.client.get(place).text
    for target in re.findall(r'hx-target="#([\w-]+)"', told):
        assert f'id="{target}"' in page
    assert ("Finished." in told) == (view == "operation")
    assert regions(console, around, "nothing") == "" or view == "failures"
