"""Two connections held against each other at each lock: nothing stuck, nothing lost."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event, select, text

from latchwork.decisions.states import JobState
from latchwork.errors import StoreBusy
from latchwork.store import expiry, operator_actions, schema
from latchwork.store.engines import writing
from latchwork.store.enqueueing import insert_jobs
from latchwork.store.heartbeats import RenewalStatus
from latchwork.store.outcomes import AnswerStatus, Report, report_outcomes
from tests.store.builders import (
    ACTOR,
    ENDS,
    LEASE_SECONDS,
    ON_ANY_TERMINAL,
    SUCCESS,
    WORKER,
    Store,
)

S = JobState
ENDINGS = (S.SUCCEEDED, S.DEAD_LETTERED, S.QUARANTINED, S.CANCELLED)
PATIENCE_SECONDS = 30
WAITING = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def until_waiting(store: Store, count: int = 1) -> None:
    """Return once ``count`` connections wait for a lock."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while store.database.read(lambda connection: connection.scalar(WAITING)) != count:
        assert time.monotonic() < deadline, "nobody waits for the lock that is held"


def done(future: "Future[Any]") -> Any:
    return future.result(timeout=PATIENCE_SECONDS)


def end(connection: Any, store: Store, job_id: UUID, state: JobState) -> Any:
    """End a Leased job by its worker's report, or a Scheduled one by an operator's cancel."""
    row = store.row(job_id)
    if row.state is S.SCHEDULED:
        return operator_actions.cancel(connection, job_id, actor=ACTOR, now=store.now)
    report = Report(store.hold(job_id), ENDS[state])
    return report_outcomes(connection, WORKER, [report], now=store.now, wait=True)


def parent_that_will(store: Store, state: JobState) -> UUID:
    return store.enqueue() if state is S.CANCELLED else store.in_state(S.LEASED)


@pytest.mark.parametrize("state", ENDINGS)
def test_an_end_waits_for_the_enqueue_that_holds_the_parent_and_settles_its_child(
    postgres_store: Store, threads: ThreadPoolExecutor, state: JobState
) -> None:
    store = postgres_store
    parent = parent_that_will(store, state)
    child, cleanup = store.new_job(parent), store.new_job(parent, mode=ON_ANY_TERMINAL)
    with writing(store.database.engine) as connection:
        insert_jobs(connection, [child, cleanup], now=store.now)
        if state is not S.CANCELLED:
            # Without waiting the report is set aside at once.
            assert store.finish(store.hold(parent), ENDS[state]).status is AnswerStatus.BUSY
        ending = threads.submit(store.database.write, end, store, parent, state)
        until_waiting(store)
    done(ending)
    released = S.SCHEDULED if state is S.SUCCEEDED else S.CANCELLED
    assert store.states(parent, child.id, cleanup.id) == [state, released, S.SCHEDULED]


@pytest.mark.parametrize("state", ENDINGS)
def test_an_enqueue_waits_for_the_end_of_its_parent_and_is_born_after_it(
    postgres_store: Store, threads: ThreadPoolExecutor, state: JobState
) -> None:
    store = postgres_store
    parent = parent_that_will(store, state)
    with writing(store.database.engine) as connection:
        end(connection, store, parent, state)
        enqueued = threads.submit(store.enqueue, parent)
        cleanup = threads.submit(store.enqueue, parent, mode=ON_ANY_TERMINAL)
        until_waiting(store, 2)
    born = S.SCHEDULED if state is S.SUCCEEDED else S.CANCELLED
    assert store.path(done(enqueued)) == [born]
    assert store.path(done(cleanup)) == [S.SCHEDULED]


def test_a_cascade_waits_for_the_enqueue_of_a_grandchild_and_cancels_it_too(
    postgres_store: Store, threads: ThreadPoolExecutor
) -> None:
    store = postgres_store
    root = store.enqueue()
    child = store.enqueue(root)
    grandchild = store.new_job(child)
    below = store.new_job(grandchild.id)
    with writing(store.database.engine) as connection:
        insert_jobs(connection, [grandchild, below], now=store.now)
        cancelling = threads.submit(store.cancel, root)
        until_waiting(store)
    done(cancelling)
    assert set(store.states(root, child, grandchild.id, below.id)) == {S.CANCELLED}
    assert store.row(below.id).cause_root_id == root


def test_an_enqueue_below_a_cascade_waits_for_it_and_is_born_cancelled(
    postgres_store: Store, threads: ThreadPoolExecutor
) -> None:
    store = postgres_store
    root = store.enqueue()
    child = store.enqueue(root)
    with writing(store.database.engine) as connection:
        operator_actions.cancel(connection, root, actor=ACTOR, now=store.now)
        enqueued = threads.submit(store.enqueue, child)
        until_waiting(store)
    grandchild = done(enqueued)
    assert store.path(grandchild) == [S.CANCELLED]
    assert store.row(grandchild).cause_root_id == root


@pytest.mark.parametrize("first", [S.SUCCEEDED, S.DEAD_LETTERED])
def test_two_parents_of_one_child_that_end_together_count_both(
    postgres_store: Store, threads: ThreadPoolExecutor, first: JobState
) -> None:
    store = postgres_store
    parents = [store.in_state(S.LEASED) for _ in range(2)]
    child = store.enqueue(*parents)
    cleanup = store.enqueue(*parents, mode=ON_ANY_TERMINAL)
    second = Report(store.hold(parents[1]), SUCCESS)
    with writing(store.database.engine) as connection:
        end(connection, store, parents[0], first)
        # Its own row is free, but its child's is not: set aside without waiting.
        assert store.report(second)[0].status is AnswerStatus.BUSY
        assert store.state(parents[1]) is S.LEASED
        reporting = threads.submit(store.report, second, wait=True)
        until_waiting(store)
    assert done(reporting)[0].status is AnswerStatus.APPLIED
    released = S.SCHEDULED if first is S.SUCCEEDED else S.CANCELLED
    assert store.states(child, cleanup) == [released, S.SCHEDULED]


def test_a_child_met_out_of_order_is_not_waited_for_while_later_ones_are_held(
    postgres_store: Store, threads: ThreadPoolExecutor
) -> None:
    """Else who holds the earlier child and waits for the later one would wait for ever."""
    store = postgres_store
    engine = store.database.engine
    parent = store.in_state(S.LEASED)
    report = Report(store.hold(parent), SUCCESS)
    with writing(engine) as enqueuer:
        earlier = store.new_job(parent)
        insert_jobs(enqueuer, [earlier], now=store.now)
        later = store.enqueue(parent)
        ending = threads.submit(store.report, report, wait=True)
        until_waiting(store)  # it has seen the later child alone
        reached, go_on = threading.Event(), threading.Event()

        def stop_once(*arguments: Any) -> None:
            if "FOR UPDATE OF" in arguments[2] and not reached.is_set():
                reached.set()
                go_on.wait(PATIENCE_SECONDS)

        event.listen(engine, "before_cursor_execute", stop_once)
    assert reached.wait(PATIENCE_SECONDS)  # it holds the parent and the later child
    with writing(engine) as other:
        lock(other, earlier.id)
        waiting = threads.submit(lock, other, later)
        until_waiting(store)
        go_on.set()
        done(waiting)
    assert done(ending)[0].status is AnswerStatus.APPLIED
    assert store.states(earlier.id, later) == [S.SCHEDULED, S.SCHEDULED]
    assert store.database.retries == {"order": 1}


def lock(connection: Any, job_id: UUID) -> None:
    connection.execute(select(schema.jobs).where(schema.jobs.c.id == job_id).with_for_update())


def test_a_batch_applies_what_is_free_and_sets_aside_what_is_not(postgres_store: Store) -> None:
    store = postgres_store
    held, blocked, free = (store.in_state(S.LEASED) for _ in range(3))
    store.enqueue(held, blocked)
    reports = [Report(store.hold(job_id), SUCCESS) for job_id in (blocked, held, free)]
    with writing(store.database.engine) as connection:
        end(connection, store, held, S.SUCCEEDED)
        answers = store.report(*reports)
    statuses = [answer.status for answer in answers]
    assert statuses == [AnswerStatus.BUSY, AnswerStatus.BUSY, AnswerStatus.APPLIED]
    answers = store.report(*reports)
    assert [answer.status for answer in answers] == [
        AnswerStatus.APPLIED, AnswerStatus.ALREADY_APPLIED, AnswerStatus.ALREADY_APPLIED,
    ]  # fmt: skip


def test_a_sweep_waits_for_the_outcome_that_came_first_and_leaves_it(
    postgres_store: Store, threads: ThreadPoolExecutor
) -> None:
    store = postgres_store
    job_id = store.in_state(S.LEASED)
    child = store.enqueue(job_id)
    with writing(store.database.engine) as connection:
        end(connection, store, job_id, S.SUCCEEDED)
        store.wait(LEASE_SECONDS)
        sweeping = threads.submit(store.sweep)
        until_waiting(store)
    assert done(sweeping) == 0
    assert store.states(job_id, child) == [S.SUCCEEDED, S.SCHEDULED]


def test_an_outcome_meets_the_sweep_that_came_first_and_is_stale(
    postgres_store: Store, threads: ThreadPoolExecutor
) -> None:
    store = postgres_store
    job_id = store.in_state(S.LEASED)
    report = Report(store.hold(job_id), SUCCESS)
    reported_at = store.now
    store.wait(LEASE_SECONDS)
    verdicts = [expiry.LapseVerdict(lapsed, None) for lapsed in store.lapsed()]
    with writing(store.database.engine) as connection:
        expiry.expire(connection, verdicts, now=store.now)
        store.now = reported_at  # a node whose clock is behind
        assert store.report(report)[0].status is AnswerStatus.BUSY
        assert store.renew(report.hold)[0].status is RenewalStatus.BUSY
        reporting = threads.submit(store.report, report, wait=True)
        until_waiting(store)
    assert done(reporting)[0].status is AnswerStatus.STALE
    assert store.renew(report.hold)[0].status is RenewalStatus.LOST
    assert store.state(job_id) is S.DEAD_LETTERED


def test_a_callers_open_transaction_delays_its_leased_parent_alone(
    postgres_store: Store, threads: ThreadPoolExecutor
) -> None:
    store = postgres_store
    ids = store.enqueue_all([store.new_job(queue="fifty") for _ in range(50)])
    holds = [job.hold for job in store.claim("fifty", limit=50)]
    parent, at = ids[7], 7
    child = store.new_job(parent)
    with writing(store.database.engine) as connection:
        insert_jobs(connection, [child], now=store.now)
        store.wait(20)
        statuses = [renewal.status for renewal in store.renew(*holds)]
        assert statuses.pop(at) is RenewalStatus.BUSY
        assert set(statuses) == {RenewalStatus.RENEWED}
        answers = [a.status for a in store.report(*(Report(hold, SUCCESS) for hold in holds))]
        assert answers.pop(at) is AnswerStatus.BUSY
        assert set(answers) == {AnswerStatus.APPLIED}
        assert store.count(S.SUCCEEDED) == 49
        # Nobody else is held up: claims, sweeps, enqueues below other parents.
        assert store.claim("fifty", limit=5) == []
        store.enqueue(ids[8])
        alone = threads.submit(store.report, Report(holds[at], SUCCESS), wait=True)
        until_waiting(store)
    assert done(alone)[0].status is AnswerStatus.APPLIED
    assert store.states(parent, child.id) == [S.SUCCEEDED, S.SCHEDULED]


def test_a_claim_passes_over_rows_that_somebody_holds(postgres_store: Store) -> None:
    store = postgres_store
    first, second = store.enqueue_all([store.new_job(queue="mail") for _ in range(2)])
    with writing(store.database.engine) as connection:
        insert_jobs(connection, [store.new_job(first)], now=store.now)
        assert [job.id for job in store.claim("mail", limit=2)] == [second]
    assert [job.id for job in store.claim("mail", limit=2)] == [first]


def test_an_operator_gives_up_on_a_held_row_and_changes_nothing(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = postgres_store
    monkeypatch.setattr(operator_actions, "LOCK_SECONDS", 0.02)
    job_id = store.enqueue()
    with writing(store.database.engine) as connection:
        insert_jobs(connection, [store.new_job(job_id)], now=store.now)
        with pytest.raises(StoreBusy):
            store.cancel(job_id)
    assert store.database.retries == {"lock": 5}
    assert store.state(job_id) is S.SCHEDULED
    assert store.audit_rows() == []


@pytest.mark.parametrize("commits", [True, False])
def test_an_enqueue_never_waits_for_another_first_job_of_its_queue(
    postgres_store: Store, commits: bool
) -> None:
    store = postgres_store
    first = store.new_job(queue="new", wire_name="new")
    with writing(store.database.engine) as connection:
        insert_jobs(connection, [first], now=store.now)
        second = store.enqueue(queue="new", wire_name="new")
        if not commits:
            connection.rollback()
    assert store.state(second) is S.SCHEDULED
    # Had the first one rolled back, the next job of the queue gives it its row.
    if not commits:
        store.enqueue(queue="new", wire_name="new")
    names = select(schema.queues.c.name)
    assert store.database.read(lambda connection: connection.scalars(names).all()) == ["new"]
