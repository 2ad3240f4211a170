"""How soon after its commit a transition is seen in the live log."""

from statistics import median
from typing import Any

from playwright.sync_api import expect

from latchwork.application import Latchwork
from tests.browser.conftest import OpenPage
from tests.store.builders import Store

TRANSITIONS = 100
BOUND_SECONDS = 0.5

WATCH = """() => {
    window.seen = {};
    new MutationObserver(() => {
        for (const row of document.querySelectorAll("#rows tr")) {
            if (row.id in seen) continue;
            seen[row.id] = 0;
            const see = () => { seen[row.id] = performance.timeOrigin + performance.now(); };
            requestAnimationFrame(see);
        }
    }).observe(document.getElementById("rows"), {childList: true});
}"""


TWO_FRAMES = """() => new Promise(done =>
    requestAnimationFrame(() => requestAnimationFrame(done)))"""


def test_half_of_all_transitions_are_visible_within_half_a_second_of_their_commit(
    open_page: OpenPage, app: Latchwork, store: Store
) -> None:
    page = open_page("/log")
    expect(page.locator("#live")).to_have_attribute("data-mark", "live")
    page.evaluate(WATCH)
    clock = app.database.clock
    committed: dict[str, float] = {}
    for number in range(TRANSITIONS):
        store.enqueue()
        at = clock.now().timestamp()
        (newest,) = app.monitor.transitions(limit=1).transitions
        committed[f"log-{newest.position}"] = at
        if number % 10 == 0 or number == TRANSITIONS - 1:
            expect(page.locator(f"#log-{newest.position}")).to_be_attached()
    page.evaluate(TWO_FRAMES)
    seen: dict[str, Any] = page.evaluate("seen")
    waits = [seen[row] / 1000 - at for row, at in committed.items()]
    assert median(waits) < BOUND_SECONDS
