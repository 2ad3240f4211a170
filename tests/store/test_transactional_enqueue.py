"""Enqueueing on the caller's own Connection or Session: the jobs exist if that commits."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.orm import Session

from latchwork.client import Client
from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import JobState
from latchwork.errors import DuplicateJob, InvalidConnection, RetryTransaction, UnknownParent
from latchwork.jobs import JobCall, JobType
from latchwork.store.database import Database
from latchwork.workflows import Workflow
from tests.store.builders import Store


def pack(context: Any) -> None:
    """A handler without arguments."""


PACK: JobType[[], None] = JobType(
    pack, wire_name="pack", queue="default", retry=RetryPolicy(), tags=(), interrupt=True,
    timeout_seconds=None,
)  # fmt: skip
CALL: JobCall = PACK.bind()


class Stopped(Exception):
    """The caller's own reason to roll back."""


@contextmanager
def transaction(store: Store, kind: str) -> Iterator[Connection | Session]:
    """A caller's transaction that commits at the end."""
    engine = store.database.engine
    if kind == "connection":
        with engine.begin() as connection:
            yield connection
    else:
        with Session(engine) as session, session.begin():
            yield session


@pytest.fixture
def shop(store: Store) -> Iterator[Store]:
    """A store with a table of the caller's own."""
    store.database.write(lambda c: c.execute(text("CREATE TABLE orders (id INTEGER)")))
    yield store
    store.database.write(lambda c: c.execute(text("DROP TABLE orders")))


def orders(store: Store) -> int:
    count = text("SELECT count(*) FROM orders")
    return int(store.database.read(lambda connection: connection.execute(count).scalar_one()))


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_jobs_and_the_callers_rows_commit_or_roll_back_together(shop: Store, kind: str) -> None:
    client = Client(shop.database)
    with transaction(shop, kind) as mine:
        mine.execute(text("INSERT INTO orders VALUES (1)"))
        parent = client.enqueue(CALL, connection=mine)
        child = client.enqueue_dependency(CALL, parent=parent, connection=mine)
        client.enqueue_many([CALL, CALL], connection=mine)
        workflow = Workflow("w").add("a", CALL).add("b", CALL, after=["a"])
        started = client.start_workflow(workflow, connection=mine)
        client.append_step(started.id, "c", CALL, after=["b"], connection=mine)
    assert shop.states(parent, child) == [JobState.SCHEDULED, JobState.AWAITING_PARENT]
    assert (orders(shop), shop.count(JobState.SCHEDULED)) == (1, 4)
    before = shop.dump()
    with suppress(Stopped), transaction(shop, kind) as mine:
        mine.execute(text("INSERT INTO orders VALUES (2)"))
        client.enqueue(CALL, connection=mine)
        client.enqueue_dependency(CALL, parent=parent, connection=mine)
        raise Stopped
    assert shop.dump() == before
    assert orders(shop) == 1


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_a_refused_enqueue_leaves_the_callers_transaction_usable(shop: Store, kind: str) -> None:
    client = Client(shop.database)
    taken = client.enqueue(CALL)
    with transaction(shop, kind) as mine:
        mine.execute(text("INSERT INTO orders VALUES (1)"))
        with pytest.raises(DuplicateJob):
            client.enqueue(CALL, job_id=taken, connection=mine)
        with pytest.raises(UnknownParent):
            client.enqueue_dependency(CALL, parent=uuid4(), connection=mine)
        assert client.enqueue(CALL, job_id=taken, exist_ok=True, connection=mine) == taken
        mine.execute(text("INSERT INTO orders VALUES (2)"))
        client.enqueue(CALL, connection=mine)
    assert (orders(shop), shop.count(JobState.SCHEDULED)) == (2, 2)


def test_a_connection_that_cannot_carry_the_jobs_is_refused(shop: Store) -> None:
    client = Client(shop.database)
    before = shop.dump()
    elsewhere = create_engine("sqlite://")
    foreign = create_engine(shop.database.engine.url)
    autocommit = foreign.execution_options(isolation_level="AUTOCOMMIT")
    born_autocommit = create_engine(shop.database.engine.url, isolation_level="AUTOCOMMIT")
    not_joinable = [autocommit, born_autocommit]
    if shop.database.is_sqlite:
        not_joinable.append(foreign)
    for engine in [*not_joinable, elsewhere]:
        with engine.connect() as connection, pytest.raises(InvalidConnection):
            client.enqueue(CALL, connection=connection)
        with Session(engine) as session, pytest.raises(InvalidConnection):
            client.enqueue(CALL, connection=session)
    wrong: Any = "connection"
    with pytest.raises(InvalidConnection):
        client.enqueue(CALL, connection=wrong)
    for engine in (elsewhere, foreign, born_autocommit):
        engine.dispose()
    assert shop.dump() == before


def test_on_postgresql_any_engine_of_the_same_database_may_carry_jobs(postgres_url: str) -> None:
    database = Database(postgres_url)
    client = Client(database)
    foreign = create_engine(database.engine.url)
    with foreign.begin() as connection:
        job_id = client.enqueue(CALL, connection=connection)
    foreign.dispose()
    assert Store(database).state(job_id) is JobState.SCHEDULED
    database.dispose()


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_a_busy_database_tells_the_caller_to_run_the_transaction_again(
    sqlite_url: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATCHWORK_SQLITE_BUSY_SECONDS", "0.05")
    database = Database(sqlite_url)
    client = Client(database)
    client.enqueue(CALL)
    with database.engine.begin():
        if kind == "connection":
            with database.engine.connect() as mine, pytest.raises(RetryTransaction):
                client.enqueue(CALL, connection=mine)
        else:
            with Session(database.engine) as session, pytest.raises(RetryTransaction):
                client.enqueue(CALL, connection=session)
    database.dispose()
