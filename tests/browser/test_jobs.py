"""The listing in a real browser: it follows its jobs, and acts on those selected."""

import pytest
from playwright.sync_api import expect

from latchwork.decisions.states import JobState
from tests.browser.conftest import OpenPage
from tests.store.builders import Store


@pytest.mark.parametrize("script", [True, False])
def test_selected_jobs_are_requeued_with_and_without_script(
    open_page: OpenPage, store: Store, *, script: bool
) -> None:
    job, other = store.enqueue(), store.enqueue()
    for one in (job, other):
        store.end(one, JobState.DEAD_LETTERED)
    page = open_page("/jobs?state=dead_lettered", java_script_enabled=script)
    page.locator(f'input[value="{job}"]').check()
    page.get_by_role("button", name="Requeue selected").click()
    assert store.state(job) is JobState.DEAD_LETTERED
    page.get_by_role("button", name="Requeue 1 job").click()
    expect(page.locator("#message")).to_contain_text("1 job requeued.")
    assert store.state(job) is JobState.SCHEDULED
    assert store.state(other) is JobState.DEAD_LETTERED


def test_a_listed_job_follows_its_transitions_and_stays_selected(
    open_page: OpenPage, store: Store
) -> None:
    job = store.enqueue()
    page = open_page("/jobs")
    expect(page.locator("#live")).to_have_attribute("data-mark", "live")
    page.locator(f'input[value="{job}"]').check()
    store.end(job, JobState.SUCCEEDED)
    expect(page.locator(f"#state-{job}")).to_have_text("Succeeded")
    expect(page.locator(f'input[value="{job}"]')).to_be_checked()


def test_rows_are_reached_and_opened_by_keyboard_alone(open_page: OpenPage, store: Store) -> None:
    store.enqueue()
    job = store.enqueue()
    page = open_page("/")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator(f'input[value="{job}"]')).to_be_checked()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{job}")
