"""A workflow's page in a real browser: it follows its jobs, and retries them."""

import pytest
from playwright.sync_api import expect

from latchwork.decisions.states import JobState
from tests.browser.conftest import OpenPage
from tests.store.builders import Store
from tests.store.workflow_scene import Flow

S = JobState


@pytest.fixture
def flow(store: Store) -> Flow:
    return Flow(store)


def test_the_page_follows_its_steps_and_offers_a_retry_when_they_have_ended(
    open_page: OpenPage, flow: Flow
) -> None:
    started = flow.start(a="", b="a", c="*b")
    page = open_page(f"/workflows/{started.id}")
    expect(page.locator("#live")).to_have_attribute("data-mark", "live")
    page.evaluate("window.sameDocument = true")
    retry = page.get_by_role("button", name="Retry unfinished")
    expect(retry).to_be_disabled()
    flow.end(started.jobs["a"], S.DEAD_LETTERED)
    node = page.locator(f"#node-{started.jobs['a']}")
    expect(node).to_have_class("graph-box st-dead_lettered failed", timeout=5_000)
    flow.end(started.jobs["c"])
    expect(page.locator("#workflow-status")).to_contain_text("Failed", timeout=5_000)
    expect(retry).to_be_enabled()
    assert page.evaluate("window.sameDocument")
    retry.click()
    expect(page.get_by_text("The steps of the chosen scope run again.")).to_be_visible()
    expect(page.locator("#workflow-status")).to_contain_text("Running")
    assert flow.states(started.jobs) == {
        "a": S.SCHEDULED, "b": S.AWAITING_PARENT, "c": S.SUCCEEDED
    }  # fmt: skip


def test_a_step_opens_its_job_beside_the_graph(open_page: OpenPage, flow: Flow) -> None:
    started = flow.start(a="", b="a")
    page = open_page(f"/workflows/{started.id}")
    page.locator(f"#node-{started.jobs['b']} a").click()
    panel = page.locator("#graph-panel")
    expect(panel.get_by_role("link", name="Open the job")).to_have_attribute(
        "href", f"/jobs/{started.jobs['b']}"
    )


def test_the_listing_follows_and_everything_fits_a_phone(open_page: OpenPage, flow: Flow) -> None:
    started = flow.start(a="", b="a")
    page = open_page("/workflows", viewport={"width": 360, "height": 800})
    expect(page.locator("#live")).to_have_attribute("data-mark", "live")
    flow.end(started.jobs["a"], S.DEAD_LETTERED)
    expect(page.locator(f"#workflow-{started.id}")).to_contain_text("Failed", timeout=5_000)
    for path in ("/workflows", f"/workflows/{started.id}"):
        page.goto(page.url.partition("/workflows")[0] + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
