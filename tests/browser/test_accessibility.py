"""What axe finds on every page, in both themes, on a wide screen and on a phone: nothing."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import Page

from latchwork import JobContext, Workflow
from latchwork.application import Latchwork
from latchwork.decisions.observers import BACK_OFF
from latchwork.decisions.states import JobState
from latchwork.maintenance.failure_grouper import FailureGrouper
from latchwork.store.heartbeats import NodeRecord, register_node
from tests.browser.conftest import OpenPage
from tests.store.builders import WORKER, Store
from tests.store.scene import Scene
from tests.store.watching import watch

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
    one => `${one.id}: ${one.help}: ${one.nodes.map(node => node.target).join(" | ")}`)"""


@pytest.fixture
def pages(app: Latchwork, store: Store) -> list[str]:
    """The address of every page, each with something of every kind on it."""
    jobs = {state: store.in_state(state) for state in JobState}
    jobs[JobState.AWAITING_PARENT] = store.enqueue(jobs[JobState.SCHEDULED], tags=("nightly",))
    store.cancel(jobs[JobState.LEASED])
    node = NodeRecord(
        worker_id=WORKER, host="host", pid=1, version="0", started_at=store.now,
        heartbeat_seconds=20, slots=4, queues=("default",), wire_names=("pack",),
    )  # fmt: skip
    app.database.write(register_node, node)
    while FailureGrouper(app.database).run_once():
        pass
    group = store.row(jobs[JobState.DEAD_LETTERED]).cause_group
    operation = app.operator.requeue_group(group, actor="ann")
    return [
        "/", "/log", "/log?failing=1&queue=none", "/jobs", "/jobs?state=leased&tag=none",
        "/queues", "/queue?queue=default&limit=2", "/audit", "/nodes", "/nowhere",
        "/failures", f"/failures/{group}", "/operations", f"/operations/{operation.id}",
        "/schedules", "/schedule?schedule=nightly", "/observers", "/observer?observer=bell",
        "/workflows", f"/workflows/{with_services(app)}",
        f"/jobs/{jobs[JobState.SCHEDULED]}/graph",
        *(f"/jobs/{jobs[state]}" for state in (
            JobState.AWAITING_PARENT, JobState.LEASED, JobState.SUCCEEDED, JobState.DEAD_LETTERED
        )),
    ]  # fmt: skip


def with_services(app: Latchwork) -> UUID:
    """A schedule that was triggered, an observer with a dead delivery, and a workflow, whose id."""

    @app.job("pack")
    def pack(context: JobContext) -> None:
        """Only enqueued here."""

    app.client.set_schedule("nightly", pack.bind(), cron="0 2 * * *", zone="Europe/Berlin")
    app.operator.trigger_schedule("nightly", actor="ann")
    scene = Scene(app.database)
    bell = watch(scene, "bell", JobState.SCHEDULED)
    bell.react = fail
    scene.enqueue("ring")
    for _ in range(BACK_OFF.max_attempts):
        bell.catch_up()
        scene.wait(BACK_OFF.cap_seconds)
    workflow = Workflow("month").add("collect", pack.bind())
    workflow.add("publish", pack.bind(), after=["collect"])
    return app.client.start_workflow(workflow).id


def fail(*_: object) -> None:
    raise ConnectionError("the pager did not answer")


def violations(page: Page) -> list[str]:
    # The policy forbids added script elements, so the source is evaluated by the browser itself.
    page.evaluate(AXE)
    found: Any = page.evaluate(RUN)
    return [str(one) for one in found]


@pytest.mark.parametrize("width", [1440, 360])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_axe_finds_nothing(open_page: OpenPage, pages: list[str], width: int) -> None:
    page = open_page(
        "/health", viewport={"width": width, "height": 900}, reduced_motion="reduce",
    )  # fmt: skip
    origin = page.url.removesuffix("/health")
    found: dict[str, list[str]] = {}
    for path in pages:
        page.goto(origin + path)
        found |= in_both_themes(page, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.goto(f"{origin}/jobs")
    page.locator("#rows input").first.check()
    page.get_by_role("button", name="Cancel selected").click()
    page.wait_for_url("**/jobs/cancel")
    found |= in_both_themes(page, "the preview of a selection")
    assert {path: one for path, one in found.items() if one} == {}


def in_both_themes(page: Page, path: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found[f"{path}, {scheme}"] = violations(page)
    return found
