"""What the console's tests share."""

from collections.abc import Iterator

import pytest

from latchwork.application import Latchwork
from tests.console.worlds import World, make_world


@pytest.fixture
def world(sqlite_url: str) -> Iterator[World]:
    """A console over a job in every state, on SQLite: the monitor's tests cover both databases."""
    app = Latchwork(sqlite_url)
    world = make_world(app)
    with world.client:
        yield world
    app.database.dispose()
