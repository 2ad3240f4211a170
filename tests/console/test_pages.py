"""Every page with hostile names, under a prefix, as JSON, and while the database is away."""

import json
import re
from html.parser import HTMLParser

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from latchwork.application import Latchwork
from latchwork.decisions.states import JobState
from latchwork.errors import StoreUnavailable
from latchwork.store.moves import Cause
from latchwork.views import JobPage
from latchwork_console.server import create_console
from tests.console.worlds import ADDRESS, HOSTILE, World

PAGES = ("/", "/log", "/log?failing=1", "/jobs", "/queues", "/nodes", "/audit")


class Tags(HTMLParser):
    """Every start tag of a page, with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("path", PAGES)
def test_hostile_names_are_shown_and_stay_text(world: World, path: str) -> None:
    answer = world.client.get(path)
    assert answer.status_code == 200
    assert "&lt;script&gt;alert" in answer.text
    shown = re.sub(r'value="[^"]*"', "", answer.text)
    assert "\u202e" not in shown
    for tag, attributes in Tags(answer.text).found:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        if tag == "script":
            assert (attributes.get("src") or "").startswith("/static/")


def test_a_link_made_of_a_hostile_name_finds_its_jobs(world: World) -> None:
    page = world.client.get("/jobs")
    links = [
        attributes["href"] or ""
        for tag, attributes in Tags(page.text).found
        if tag == "a" and "queue=" in (attributes.get("href") or "")
    ]
    assert links
    for link in links:
        found = world.client.get(link, headers={"Accept": "application/json"}).json()["jobs"]
        assert len(found) == 1


@pytest.mark.parametrize("path", [*PAGES, "/nothing"])
def test_under_a_prefix_every_address_carries_it(world: World, path: str) -> None:
    mounted = Starlette(routes=[Mount("/ops/jobs", create_console(world.app))])
    page = TestClient(mounted, base_url=ADDRESS).get(f"/ops/jobs{path}")
    for _, attributes in Tags(page.text).found:
        for name in ("href", "src", "action", "formaction", "hx-sse:connect"):
            address = attributes.get(name)
            if address and not address.startswith("#"):
                assert address.startswith("/ops/jobs/"), (name, address)


@pytest.mark.parametrize("path", ["/", "/log", "/jobs", "/queues", "/nodes"])
def test_an_empty_console_says_why_it_is_empty(sqlite_url: str, path: str) -> None:
    app = Latchwork(sqlite_url)
    client = TestClient(create_console(app), base_url=ADDRESS)
    answer = client.get(path)
    assert answer.status_code == 200
    assert 'class="empty"' in answer.text or "Nothing needs attention" in answer.text
    app.database.dispose()


def test_a_listing_as_json_has_the_shape_of_the_command_line(world: World) -> None:
    asked = {"Accept": "application/json"}
    listing = world.client.get("/jobs?state=dead_lettered", headers=asked).json()
    assert set(listing) >= {"jobs", "next", "previous"}
    (job,) = listing["jobs"]
    assert job["id"] == str(world.jobs[JobState.DEAD_LETTERED])
    assert job["state"] == "dead_lettered"
    assert job["enqueued_at"].endswith("Z")


def test_the_log_as_json_is_one_object_per_line(world: World) -> None:
    lines = world.client.get("/log", headers={"Accept": "application/json"}).text.splitlines()
    assert {json.loads(line)["state"] for line in lines} == {state.value for state in JobState}


@pytest.mark.parametrize("path", ["/", "/queues", "/nodes"])
def test_every_page_has_a_json_twin(world: World, path: str) -> None:
    assert world.client.get(path, headers={"Accept": "application/json"}).json()


def test_errors_are_json_for_those_who_ask_for_it(world: World) -> None:
    answer = world.client.get("/jobs?state=none", headers={"Accept": "application/json"})
    assert answer.status_code == 400
    assert "state" in answer.json()["error"]


def test_tabs_stand_in_life_cycle_order_with_exact_counts(world: World) -> None:
    page = world.client.get("/jobs").text
    tabs = page[page.index('id="state-tabs"') : page.index("</nav>", page.index('id="state-tabs"'))]
    labels = [state.label for state in JobState]
    assert re.findall(r'label">([^<]+)<', tabs) == labels
    assert re.findall(r'class="n" id="tab-\w+">([^<]+)<', tabs) == ["7"] + ["1"] * 7


def test_a_typed_id_leads_to_its_job(world: World) -> None:
    job = world.jobs[JobState.SUCCEEDED]
    answer = world.client.get(f"/jobs?id=%20{job}%20")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/jobs/{job}"


@pytest.mark.parametrize("typed", ["nonsense", "00000000-0000-7000-8000-000000000000"])
def test_an_unknown_id_is_said_to_be_unknown(world: World, typed: str) -> None:
    answer = world.client.get(f"/jobs?id={typed}")
    assert answer.status_code == 200
    assert "No job with the id" in answer.text


def test_paging_leads_there_and_back_without_losing_a_job(world: World) -> None:
    asked = {"Accept": "application/json"}
    whole = [job["id"] for job in world.client.get("/jobs", headers=asked).json()["jobs"]]
    seen: list[str] = []
    address = "/jobs?limit=3"
    while True:
        page = world.client.get(address, headers=asked).json()
        seen += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        direction, position = page["next"].split(":")
        address = f"/jobs?limit=3&{direction}={position}"
    assert seen == whole


@pytest.mark.parametrize("part", ["attention", "counts", "rates", "queues", "transitions"])
def test_a_part_that_cannot_be_read_leaves_the_rest_of_the_overview(
    world: World, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(world.app.monitor, part, fail)
    answer = world.client.get("/")
    assert answer.status_code == 200
    assert "This part could not be read" in answer.text
    assert HOSTILE not in answer.text


def test_a_database_that_is_away_is_a_page_that_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(world.app.monitor, "nodes", fail)
    monkeypatch.setattr(world.app.monitor, "counts", fail)
    answer = world.client.get("/nodes")
    assert answer.status_code == 503
    assert "database" in answer.text


def test_the_icon_is_where_browsers_look_for_it_beside_pages_that_name_none(world: World) -> None:
    assert world.client.get("/favicon.ico").headers["content-type"] == "image/svg+xml"


def test_a_cause_is_listed_by_the_name_of_its_class(world: World) -> None:
    job = world.store.enqueue()
    cause = Cause(code="payload_refused", type="pydantic_core._pydantic_core.ValidationError")
    world.store.end(job, JobState.QUARANTINED, cause=cause)
    text = world.client.get("/jobs?state=quarantined").text
    assert ">ValidationError</code>" in text
    assert 'title="pydantic_core._pydantic_core.ValidationError"' in text


def test_a_search_that_stopped_at_its_bound_says_how_far_it_came(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = JobPage(jobs=(), next="before:7", previous=None, partial=True)
    monkeypatch.setattr(world.app.monitor, "jobs", lambda *_, **__: nothing)
    text = world.client.get("/jobs?tag=rare").text
    assert "Nothing found among the newest 10,000 jobs." in text
    assert 'href="/jobs?tag=rare&amp;before=7">Search further back' in text
