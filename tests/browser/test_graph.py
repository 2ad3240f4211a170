"""The pages of a job and its graph in a real browser: they follow, and keep one's place."""

import pytest
from playwright.sync_api import expect

from latchwork.decisions.states import DependencyMode, JobState
from tests.browser.conftest import OpenPage
from tests.store.builders import Store


def test_nodes_recolour_as_transitions_arrive_and_the_page_is_not_loaded_again(
    open_page: OpenPage, store: Store
) -> None:
    parent = store.enqueue(wire_name="charge")
    child = store.enqueue(parent, wire_name="receipt")
    cleanup = store.enqueue(parent, wire_name="cleanup", mode=DependencyMode.ON_ANY_TERMINAL)
    page = open_page(f"/jobs/{child}/graph")
    expect(page.locator("#live")).to_have_attribute("data-mark", "live")
    page.evaluate("window.sameDocument = true")
    page.locator(f"#node-{parent} a").focus()
    hue = page.locator(f"#node-{parent} .graph-hue")
    before = hue.evaluate("one => getComputedStyle(one).fill")
    store.end(parent, JobState.DEAD_LETTERED)
    expect(page.locator(f"#node-{parent}")).to_have_class(
        "graph-box st-dead_lettered failed", timeout=5_000
    )
    expect(page.locator(f"#node-{child}")).to_have_class("graph-box st-cancelled focused")
    expect(page.locator(f"#node-{cleanup}")).to_have_class("graph-box st-scheduled")
    expect(page.locator(".graph-link.failing")).to_have_count(1 + 1)  # the legend shows one too
    expect(hue).not_to_have_css("fill", before)
    expect(page.locator("#graph-panel")).to_contain_text("Cancelled")
    assert page.evaluate("window.sameDocument")
    assert page.evaluate("document.activeElement.parentNode.id") == f"node-{parent}"


def test_a_box_opens_its_job_beside_the_graph(open_page: OpenPage, store: Store) -> None:
    parent = store.enqueue(wire_name="list-files")
    folded = [store.enqueue(parent, wire_name="hash-file") for _ in range(12)]
    page = open_page(f"/jobs/{parent}/graph")
    expect(page.locator(".graph-box")).to_have_count(2)
    page.locator(f"#node-{folded[0]} a").click()
    panel = page.locator("#graph-panel")
    expect(panel).to_contain_text("One of 12 alike")
    panel.locator(".graph-members a").nth(4).click()
    expect(panel.get_by_role("link", name="Open the job")).to_have_attribute(
        "href", f"/jobs/{folded[4]}"
    )


def test_without_script_the_graph_and_its_outline_say_the_same(
    open_page: OpenPage, store: Store
) -> None:
    parent = store.enqueue(wire_name="list-files")
    child = store.enqueue(parent, wire_name="join-files")
    page = open_page(f"/jobs/{parent}/graph", java_script_enabled=False)
    assert page.locator("#graph-list a").all_inner_texts() == ["list-files", "join-files"]
    page.locator(f"#node-{child} a").click()
    expect(page.locator("#graph-panel")).to_contain_text("join-files")


def test_the_page_of_a_job_follows_it_and_keeps_what_the_reader_opened(
    open_page: OpenPage, store: Store
) -> None:
    job = store.enqueue(wire_name="scan")
    child = store.enqueue(job, wire_name="report")
    page = open_page(f"/jobs/{job}")
    expect(page.locator("#live")).to_have_attribute("data-mark", "live")
    expect(page.locator("#job-state")).to_have_text("Scheduled")
    page.locator("#dependency-list summary").click()
    store.end(job, JobState.SUCCEEDED, output='{"rows": 12345678901234567890}')
    expect(page.locator("#job-state")).to_have_text("Succeeded")
    expect(page.locator(f"#node-{child}")).to_have_class("graph-box st-scheduled")
    expect(page.locator("#job-output")).to_contain_text("12345678901234567890")
    expect(page.locator(".timeline")).to_contain_text("attempt 1")
    expect(page.locator("#dependency-list")).to_have_attribute("open", "")


@pytest.mark.parametrize("script", [True, False])
def test_a_job_is_requeued_and_cancelled_from_its_page(
    open_page: OpenPage, store: Store, *, script: bool
) -> None:
    job = store.enqueue()
    store.end(job, JobState.DEAD_LETTERED)
    page = open_page(f"/jobs/{job}", java_script_enabled=script)
    expect(page.get_by_role("button", name="Cancel")).to_be_disabled()
    page.get_by_role("button", name="Requeue").click()
    expect(page.locator("#message")).to_contain_text("equeued")
    assert store.state(job) is JobState.SCHEDULED
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#message")).to_contain_text("ancelled")
    assert store.state(job) is JobState.CANCELLED


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_both_pages_without_scrolling_sideways(
    open_page: OpenPage, store: Store, scheme: str
) -> None:
    parent = store.enqueue(wire_name="x" * 128, queue="q" * 128)
    child = store.enqueue(parent, wire_name="y" * 128)
    for path in (f"/jobs/{child}", f"/jobs/{child}/graph"):
        page = open_page(path, viewport={"width": 360, "height": 700}, color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
