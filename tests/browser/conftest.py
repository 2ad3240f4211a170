"""A real Chromium in front of a real console."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from latchwork.application import Latchwork
from tests.chromium import find_chromium
from tests.console.served import ServedConsole
from tests.store.builders import Store

OpenPage = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for the run; without one the run fails and says what to install."""
    path = find_chromium()
    assert path, "no Chromium found: install one, or name it in LATCHWORK_CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield browser
        browser.close()


@pytest.fixture
def store(app: Latchwork) -> Store:
    """Jobs in any state, now."""
    return Store(app.database, now=app.database.clock.now())


@pytest.fixture
def console(app: Latchwork) -> Iterator[ServedConsole]:
    """The console of ``app``."""
    served = ServedConsole(app)
    yield served
    served.stop()


def is_problem(told: ConsoleMessage) -> bool:
    """Whether the browser complains; of the page that does not exist it may."""
    return told.type == "error" and not told.location["url"].endswith("/nowhere")


@pytest.fixture
def open_page(browser: Browser, console: ServedConsole) -> Iterator[OpenPage]:
    """Open a page of the console; whatever it reports as an error fails the test."""
    contexts = []
    problems: list[str] = []

    def open_at(path: str, **options: object) -> Page:
        context = browser.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda one: problems.append(one.text) if is_problem(one) else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(console.address + path)
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert not problems
