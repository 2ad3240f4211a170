"""The live log in a real browser."""

from playwright.sync_api import Page, Route, expect

from latchwork.application import Latchwork
from latchwork.decisions.states import JobState
from tests.browser.conftest import OpenPage
from tests.console.served import ServedConsole
from tests.store.builders import Store


def live(page: Page) -> Page:
    expect(page.locator("#live")).to_have_attribute("data-mark", "live")
    return page


def shown(page: Page) -> list[int]:
    ids: list[str] = page.locator("#rows tr").evaluate_all("rows => rows.map(row => row.id)")
    return [int(one.removeprefix("log-")) for one in ids]


def logged(app: Latchwork) -> list[int]:
    return [one.position for one in app.monitor.transitions(limit=200).transitions]


def test_no_message_comes_before_the_script_that_listens(
    open_page: OpenPage, console: ServedConsole
) -> None:
    page = open_page("/nowhere")
    held: list[Route] = []
    page.route("**/console.js*", lambda route: held.append(route))
    with page.expect_request_finished(lambda request: "hx-sse" in request.url):
        page.goto(f"{console.address}/log", wait_until="commit")
    assert page.evaluate("typeof htmx") == "undefined"  # what would connect waits for it
    held[0].continue_()
    live(page)


def test_a_transition_appears_by_itself(open_page: OpenPage, app: Latchwork, store: Store) -> None:
    page = live(open_page("/log"))
    store.end(store.enqueue(), JobState.SUCCEEDED)
    expect(page.locator("#rows tr")).to_have_count(3)
    assert shown(page) == logged(app)


def test_what_is_missed_while_paused_comes_on_resuming(
    open_page: OpenPage, app: Latchwork, store: Store
) -> None:
    page = live(open_page("/log"))
    store.enqueue()
    expect(page.locator("#rows tr")).to_have_count(1)
    page.keyboard.press("r")
    expect(page.locator("#live")).to_have_attribute("data-mark", "paused")
    for _ in range(5):
        store.enqueue()
    page.keyboard.press("r")
    expect(page.locator("#rows tr")).to_have_count(6)
    assert shown(page) == logged(app)


def test_nothing_is_inserted_under_the_pointer(open_page: OpenPage, store: Store) -> None:
    store.enqueue()
    page = live(open_page("/log"))
    page.locator("#rows tr").first.hover()
    store.enqueue()
    expect(page.locator(".held")).to_have_text("1 new row")
    assert len(shown(page)) == 1
    page.mouse.move(5, 5)
    expect(page.locator("#rows tr")).to_have_count(2)


def test_the_log_is_readable_without_script(open_page: OpenPage, store: Store) -> None:
    store.end(store.enqueue(wire_name="pack"), JobState.DEAD_LETTERED)
    page = open_page("/log?failing=1", java_script_enabled=False)
    expect(page.locator("#rows tr")).to_have_count(1)
    page.get_by_role("link", name="pack").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("pack")


HIDE = """() => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_more_tabs_than_a_browser_has_connections_all_load(
    open_page: OpenPage, console: ServedConsole
) -> None:
    """A browser opens six connections to a host: a tab in the background must hold none."""
    first = live(open_page("/log"))
    tabs = [first]
    for _ in range(8):
        tabs[-1].evaluate(HIDE)
        tab = first.context.new_page()
        tab.set_default_timeout(10_000)
        tab.goto(f"{console.address}/log")
        tabs.append(live(tab))
