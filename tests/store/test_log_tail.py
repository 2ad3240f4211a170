"""LogTail: following, reading, resuming, closing, and a database that goes away."""

import asyncio
import threading
import time
from collections.abc import Iterator
from itertools import islice

import pytest
from sqlalchemy import event

from latchwork.errors import InvalidValue, StoreUnavailable
from latchwork.log_tail import LogTail
from latchwork.settings import Settings
from latchwork.store.database import Database
from tests.postgres_server import PostgresInstance
from tests.store.scene import Scene


class App:
    def __init__(self, database: Database) -> None:
        self.database = database


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


@pytest.fixture
def tail(database: Database) -> Iterator[LogTail]:
    tail = LogTail(App(database), after="0")
    yield tail
    tail.close()


def test_a_tail_starts_at_the_end_unless_told(database: Database, scene: Scene) -> None:
    scene.enqueue_many(2)
    tail = LogTail(App(database))
    assert list(tail.read()) == []
    scene.enqueue()
    assert [row.position for row in tail.read()] == [3]


def test_a_bad_token_is_refused(database: Database) -> None:
    with pytest.raises(InvalidValue):
        LogTail(App(database), after="yesterday")


def test_reading_gives_what_is_there_once(tail: LogTail, scene: Scene) -> None:
    scene.enqueue_many(5)
    assert [row.position for row in tail.read(limit=2)] == [1, 2]
    assert tail.token == "2"
    assert [row.position for row in tail.read()] == [3, 4, 5]
    assert len(tail.read()) == 0
    assert tail.token == "5"


def test_following_meets_every_row_and_its_token_resumes_after_it(
    database: Database, tail: LogTail, scene: Scene
) -> None:
    scene.enqueue_many(3)
    met = list(islice(iter(tail), 2))
    assert [row.position for row in met] == [1, 2]
    assert tail.token == "2"
    resumed = LogTail(App(database), after=tail.token)
    assert [row.position for row in resumed.read()] == [3]


def test_rows_arrive_while_following_and_close_ends_it(tail: LogTail, scene: Scene) -> None:
    met: list[int] = []
    three = threading.Event()

    def follow() -> None:
        for row in tail:
            met.append(row.position)
            if len(met) == 3:
                three.set()

    follower = threading.Thread(target=follow)
    follower.start()
    for _ in range(3):
        scene.enqueue()
    assert three.wait(10)
    tail.close()
    follower.join(10)
    assert not follower.is_alive()
    assert met == [1, 2, 3]


async def test_rows_arrive_while_following_asynchronously(tail: LogTail, scene: Scene) -> None:
    met: list[int] = []
    three = asyncio.Event()

    async def follow() -> None:
        async for row in tail:
            met.append(row.position)
            if len(met) == 3:
                three.set()

    following = asyncio.create_task(follow())
    for _ in range(3):
        await asyncio.to_thread(scene.enqueue)
    await asyncio.wait_for(three.wait(), 10)
    tail.close()
    await asyncio.wait_for(following, 10)
    assert met == [1, 2, 3]


def test_more_rows_than_one_batch_are_all_met(tail: LogTail, scene: Scene) -> None:
    for _ in range(5):
        scene.enqueue_many(500)
    assert [row.position for row in islice(iter(tail), 2500)] == list(range(1, 2501))


def test_an_idle_follower_of_sqlite_runs_no_statement(sqlite_url: str) -> None:
    database = Database(sqlite_url, Settings())
    tail = LogTail(App(database))
    statements: list[str] = []
    event.listen(
        database.engine, "before_cursor_execute", lambda *seen: statements.append(str(seen[2]))
    )
    follower = threading.Thread(target=lambda: list(tail))
    follower.start()
    time.sleep(0.5)
    tail.close()
    follower.join(10)
    database.dispose()
    assert len([one for one in statements if "SELECT" in one]) == 1


def test_following_goes_on_when_the_database_comes_back(own_postgres: PostgresInstance) -> None:
    database = Database(own_postgres.url.render_as_string(hide_password=False), Settings())
    scene = Scene(database)
    scene.enqueue()
    tail = LogTail(App(database), after="0")
    follower = iter(tail)
    assert next(follower).position == 1
    own_postgres.stop_immediate()
    with pytest.raises(StoreUnavailable):
        tail.read()
    met: list[int] = []
    waiting = threading.Thread(target=lambda: met.append(next(follower).ordinal))
    waiting.start()
    own_postgres.start()
    scene.enqueue()
    waiting.join(10)
    tail.close()
    database.dispose()
    assert met == [0]
