"""The overview in a real browser: its figures lead to what they count, and it follows."""

import pytest
from playwright.sync_api import expect

from latchwork.decisions.states import JobState
from latchwork.maintenance.failure_grouper import FailureGrouper
from tests.browser.conftest import OpenPage
from tests.store.builders import Store


@pytest.fixture
def failed(store: Store) -> Store:
    """Three dead-lettered jobs and one that succeeded, among others that wait."""
    for _ in range(3):
        store.end(store.enqueue(wire_name="charge"), JobState.DEAD_LETTERED)
    store.end(store.enqueue(), JobState.SUCCEEDED)
    store.enqueue(queue="orphan")
    FailureGrouper(store.database).run_once()
    return store


@pytest.mark.usefixtures("failed")
def test_every_state_count_leads_to_as_many_jobs(open_page: OpenPage) -> None:
    page = open_page("/")
    counts = page.locator("#state-counts a")
    expect(counts).to_have_count(len(JobState))
    for place, state in enumerate(JobState):
        count = int(counts.nth(place).locator("b").inner_text())
        counts.nth(place).click()
        page.wait_for_url(f"**/jobs?state={state.value}")
        expect(page.locator("#rows tr")).to_have_count(count)
        page.go_back()


@pytest.mark.usefixtures("failed")
def test_what_needs_attention_leads_to_its_jobs(open_page: OpenPage) -> None:
    page = open_page("/")
    dead = page.locator(".attention li.st-dead_lettered")
    expect(dead).to_contain_text("3 jobs Dead-Lettered")
    expect(dead).to_contain_text("Requeue once the cause is mended.")
    dead.get_by_role("link").click()
    page.wait_for_url("**/failures")
    page.get_by_role("link", name="3 jobs of this cause").click()
    expect(page.locator("#rows tr")).to_have_count(3)


@pytest.mark.usefixtures("failed")
def test_the_charts_show_what_ended_and_lead_to_the_log(open_page: OpenPage) -> None:
    page = open_page("/")
    charts = page.locator("#charts svg.chart")
    expect(charts).to_have_count(2)
    bar = charts.first.locator(".bar-dead_lettered")
    expect(bar).to_have_count(1)
    box = bar.bounding_box()
    assert box is not None
    assert box["height"] > 10
    page.locator("#charts a").first.click()
    page.wait_for_url("**/log?at=*")
    expect(page.locator("#rows tr").first).to_be_visible()


def test_counts_badges_and_attention_follow(open_page: OpenPage, store: Store) -> None:
    page = open_page("/")
    expect(page.locator("#live")).to_have_attribute("data-mark", "live")
    expect(page.locator("#nav-jobs")).to_have_text("0")
    store.end(store.enqueue(), JobState.DEAD_LETTERED)
    expect(page.locator("#nav-jobs")).to_have_text("1")
    expect(page.locator("#nav-queues")).to_have_text("1")
    expect(page.locator("#attention")).to_contain_text("1 job Dead-Lettered")
    expect(page.locator("#state-counts .st-dead_lettered ~ b")).to_have_text("1")
