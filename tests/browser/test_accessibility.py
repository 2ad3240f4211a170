"""What axe finds on every page, in both themes, on a wide screen and on a phone: nothing."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from latchwork.application import Latchwork
from latchwork.decisions.states import JobState
from latchwork.store.heartbeats import NodeRecord, register_node
from tests.browser.conftest import OpenPage
from tests.store.builders import WORKER, Store

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
    one => `${one.id}: ${one.help}: ${one.nodes.map(node => node.target).join(" | ")}`)"""


@pytest.fixture
def pages(app: Latchwork, store: Store) -> list[str]:
    """The address of every page, with jobs in every state on it."""
    jobs = {state: store.in_state(state) for state in JobState}
    jobs[JobState.AWAITING_PARENT] = store.enqueue(jobs[JobState.SCHEDULED], tags=("nightly",))
    store.cancel(jobs[JobState.LEASED])
    node = NodeRecord(
        worker_id=WORKER, host="host", pid=1, version="0", started_at=store.now,
        heartbeat_seconds=20, slots=4, queues=("default",), wire_names=("pack",),
    )  # fmt: skip
    app.database.write(register_node, node)
    return [
        "/", "/log", "/log?failing=1&queue=none", "/jobs", "/jobs?state=leased&tag=none",
        "/queues", "/queue?queue=default&limit=2", "/audit", "/nodes", "/nowhere",
        f"/jobs/{jobs[JobState.SCHEDULED]}/graph",
        *(f"/jobs/{job}" for job in jobs.values()),
    ]  # fmt: skip


def violations(page: Page) -> list[str]:
    # The policy forbids added script elements, so the source is evaluated by the browser itself.
    page.evaluate(AXE)
    found: Any = page.evaluate(RUN)
    return [str(one) for one in found]


@pytest.mark.parametrize("width", [1440, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_axe_finds_nothing(open_page: OpenPage, pages: list[str], scheme: str, width: int) -> None:
    page = open_page(
        "/health", viewport={"width": width, "height": 900}, color_scheme=scheme,
        reduced_motion="reduce",
    )  # fmt: skip
    origin = page.url.removesuffix("/health")
    found = {}
    for path in pages:
        page.goto(origin + path)
        found[path] = violations(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.goto(f"{origin}/jobs")
    page.locator("#rows input").first.check()
    page.get_by_role("button", name="Cancel selected").click()
    page.wait_for_url("**/jobs/cancel")
    found["the preview of a selection"] = violations(page)
    assert {path: one for path, one in found.items() if one} == {}
