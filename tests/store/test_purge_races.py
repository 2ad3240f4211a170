"""The purge beside others: what it passes over, what it decides again, how it reads."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event

from latchwork.decisions.states import JobState
from latchwork.errors import UnknownParent
from latchwork.maintenance.purger import Purger
from latchwork.monitor import Monitor
from latchwork.store import purging
from latchwork.store.database import Database
from latchwork.store.engines import writing
from latchwork.store.enqueueing import insert_jobs
from tests.store.builders import ON_ANY_TERMINAL, Store
from tests.store.purges import DAY, keep_time, purge, stored, workflow
from tests.store.test_locking_postgres import done, until_waiting
from tests.store.test_query_plans import faults

S = JobState


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_an_enqueue_that_waits_for_a_purged_parent_is_told_that_it_is_gone(
    postgres_store: Store, threads: ThreadPoolExecutor
) -> None:
    store = postgres_store
    keep_time(store)
    parent = store.in_state(S.SUCCEEDED)
    store.wait(DAY)
    retention = Purger(store.database)._retention
    found = store.database.read(purging.find, retention, now=store.now)
    with writing(store.database.engine) as connection:
        assert purging.purge(connection, found.groups, retention, now=store.now) == 1
        enqueueing = threads.submit(store.enqueue, parent)
        until_waiting(store)
    with pytest.raises(UnknownParent):
        done(enqueueing)
    assert stored(store) == set()


def test_a_purge_waits_for_nobody_and_passes_over_a_parent_that_gets_a_child(
    postgres_store: Store,
) -> None:
    store = postgres_store
    keep_time(store)
    parent = store.in_state(S.SUCCEEDED)
    store.wait(DAY)
    with writing(store.database.engine) as connection:
        child = store.new_job(parent)
        insert_jobs(connection, [child], now=store.now)
        assert purge(store) == 1
    assert purge(store) == 2
    assert store.edges(child.id) == {parent: False}


def test_a_purge_decides_again_once_it_holds_the_rows(store: Store) -> None:
    requeued, expecting, untouched = (store.in_state(S.DEAD_LETTERED) for _ in range(3))
    member = workflow(store, S.DEAD_LETTERED)[0]
    store.wait(14 * DAY)
    retention = Purger(store.database)._retention
    found = store.database.read(purging.find, retention, now=store.now)
    assert len(found.groups) == 4
    store.requeue(requeued)
    child = store.enqueue(expecting, mode=ON_ANY_TERMINAL)
    late = store.enqueue(member, mode=ON_ANY_TERMINAL)
    assert store.database.write(purging.purge, found.groups, retention, now=store.now) == 1
    assert stored(store) == {requeued, expecting, child, member, late}
    assert untouched not in stored(store)


def test_a_requeue_that_comes_after_the_purge_finds_no_job(store: Store) -> None:
    job_id = store.in_state(S.DEAD_LETTERED)
    store.wait(14 * DAY)
    purge(store)
    assert store.requeue(job_id).state is None
    assert store.cancel(uuid4()).state is None


@pytest.mark.parametrize("limit", [50, 7])
def test_purged_jobs_between_two_pages_shift_no_row(store: Store, limit: int) -> None:
    jobs = [store.enqueue() for _ in range(20)]
    monitor = Monitor(store.database)
    first = monitor.jobs(limit=limit)
    for job_id in jobs[10:14]:
        store.end(job_id)
    store.wait(DAY)
    purge(store)
    met = [job.id for job in first.jobs]
    page = first
    while page.next:
        page = monitor.jobs(page=page.next, limit=limit)
        met += [job.id for job in page.jobs]
    assert len(met) == len(set(met))
    assert set(met) >= stored(store)


def test_nothing_is_purged_twice_by_two_nodes(store: Store, threads: ThreadPoolExecutor) -> None:
    for _ in range(40):
        store.in_state(S.SUCCEEDED, queue="q")
    store.wait(DAY)
    for one in [threads.submit(purge, store) for _ in range(2)]:
        done(one)
    purge(store)
    assert Monitor(store.database).counts().total == 0


def test_a_purge_scans_no_big_table(store: Store) -> None:
    parent = store.enqueue(tags=("red",))
    child = store.enqueue(parent)
    store.end(parent, output='"x"')
    store.end(child)
    workflow(store, S.SUCCEEDED)
    store.wait(DAY)
    purger = Purger(store.database)
    with recorded(store.database) as sent:
        purger.run_once()
        place = purging.Place(store.now, 1)
        store.database.read(purging.find, purger._retention, now=store.now, place=place)
    assert stored(store) == set()
    found = []
    with store.database.engine.connect() as connection:
        for statement, values in sent:
            found += [(line, statement) for line in faults(connection, statement, values)]
    assert not found, "\n".join(map(str, found))
    assert any("ix_latchwork_jobs_ended" in plan(store, *one) for one in sent)


@contextmanager
def recorded(database: Database) -> Iterator[list[Any]]:
    """The statements sent while this is open, with their values."""
    sent: list[Any] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        if statement.startswith(("SELECT", "DELETE", "WITH")) and "pg_" not in statement:
            sent.append((statement, values))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def plan(store: Store, statement: str, values: Any) -> str:
    explain = "EXPLAIN QUERY PLAN" if store.database.is_sqlite else "EXPLAIN"
    with store.database.engine.connect() as connection:
        if not store.database.is_sqlite:
            connection.exec_driver_sql("SET enable_seqscan = off")
        return str(connection.exec_driver_sql(f"{explain} {statement}", values).all())
