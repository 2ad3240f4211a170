"""The purge: what goes, what stays and why, and what it leaves behind."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import insert, update

from latchwork.decisions.states import JobState
from latchwork.log_tail import LogTail
from latchwork.maintenance.purger import Purger
from latchwork.monitor import Monitor
from latchwork.operations import Operator
from latchwork.settings import Settings
from latchwork.store import purging, schema
from latchwork.store.counter_folding import fold
from latchwork.store.database import Database
from latchwork.store.heartbeats import NodeRecord, register_node
from latchwork.store.outcomes import Report
from latchwork.store.service_tables import observers
from tests.store.builders import ON_ANY_TERMINAL, SUCCESS, Store, counted_statements
from tests.store.purges import DAY, keep_time, purge, rows, stored, workflow

S = JobState


@pytest.mark.parametrize(
    ("state", "days"),
    [(S.SUCCEEDED, 1), (S.CANCELLED, 1), (S.DEAD_LETTERED, 14), (S.QUARANTINED, 14)],
)
def test_a_job_goes_at_the_end_of_its_window_and_not_before(
    store: Store, state: JobState, days: int
) -> None:
    job_id = store.in_state(state)
    store.wait(days * DAY - 1)
    assert purge(store) == 1
    store.wait(1)
    assert purge(store) == 0
    assert Monitor(store.database).job(job_id) is None


@pytest.mark.parametrize("state", [state for state in S if not state.terminal])
def test_a_live_job_stays_for_ever(store: Store, state: JobState) -> None:
    store.in_state(state)
    store.wait(1_000 * DAY)
    assert purge(store) == (2 if state is S.AWAITING_PARENT else 1)


def test_the_windows_are_settings(database_url: str) -> None:
    settings = Settings(retention_done_hours=2, retention_failed_days=0)
    store = Store(Database(database_url, settings))
    keep_time(store)
    done_job, failed = store.in_state(S.SUCCEEDED), store.in_state(S.QUARANTINED)
    assert purge(store) == 1
    assert stored(store) == {done_job}
    assert failed not in stored(store)
    store.wait(2 * 3_600)
    assert purge(store) == 0
    store.database.dispose()


def test_everything_of_a_job_goes_with_it_and_its_id_is_free_again(store: Store) -> None:
    parent = store.enqueue(tags=("red", ("customer", "7")))
    child = store.enqueue(parent)
    store.end(parent, output='"x"')
    store.end(child)
    store.wait(DAY)
    assert purge(store) == 0
    for table in (schema.edges, schema.outputs, schema.job_tags, schema.transitions):
        assert rows(store, table) == 0, table.name
    assert store.enqueue(id=parent) == parent
    assert store.state(parent) is S.SCHEDULED
    assert store.row(parent).claim_number == 0


def test_counts_stay_exact_before_and_after_the_fold(store: Store) -> None:
    for state in (S.SUCCEEDED, S.SUCCEEDED, S.CANCELLED, S.DEAD_LETTERED):
        store.in_state(state, queue="q")
    store.wait(DAY)
    purge(store)
    monitor = Monitor(store.database)
    for _ in range(2):
        counts = monitor.counts()
        assert counts.by_queue == {"q": {S.DEAD_LETTERED: 1}}
        assert counts.total == 1
        since = store.now - timedelta(hours=1)
        points = monitor.rates("minute", since=since, until=store.now + timedelta(minutes=1))
        assert not any(
            p.succeeded or p.failed or p.cancelled or p.quarantined or p.enqueued or p.started
            for p in points
        ), "a purge is no outcome"
        store.database.write(fold, now=store.now)


def test_a_parent_stays_with_its_output_while_a_descendant_is_stored(store: Store) -> None:
    root = store.enqueue()
    middle = store.enqueue(root)
    leaf = store.enqueue(middle, due_at=store.now + timedelta(days=30))
    store.end(root, output='"facts"')
    store.end(middle)
    store.wait(20 * DAY)
    assert purge(store) == 3
    store.wait(10 * DAY)
    store.end(leaf)
    assert store.outputs() == {root: '"facts"'}
    store.wait(DAY)
    assert purge(store) == 0


def test_a_child_that_waits_for_another_parent_finds_both(store: Store) -> None:
    """B56: a finished parent is pruned while a child still waits for another one."""
    first, second = store.enqueue(), store.enqueue()
    child = store.enqueue(first, second)
    store.end(first, output='"facts"')
    store.wait(100 * DAY)
    assert purge(store) == 3
    store.end(second)
    store.end(child)
    assert first in store.outputs()


def test_a_whole_chain_goes_in_one_pass(store: Store) -> None:
    parent = store.enqueue()
    chain = [parent]
    for _ in range(30):
        chain.append(store.enqueue(chain[-1]))
    for job_id in chain:
        store.end(job_id)
        store.wait(1)
    store.wait(DAY)
    assert purge(store) == 0


def test_a_parent_that_came_back_and_ended_later_than_its_child_goes_too(store: Store) -> None:
    parent = store.enqueue()
    child = store.enqueue(parent, mode=ON_ANY_TERMINAL)
    store.end(parent, S.DEAD_LETTERED)
    store.end(child)
    store.requeue(parent)
    store.wait(60)
    store.end(parent)
    store.wait(DAY)
    purge(store)
    assert purge(store) == 0


def test_what_must_stay_does_not_keep_the_rest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "BATCH", 4)
    blocked = []
    for _ in range(10):
        parent = store.enqueue()
        blocked.append(parent)
        blocked.append(store.enqueue(parent, due_at=store.now + timedelta(days=999)))
        store.end(parent)
        store.wait(1)
    free = [store.in_state(S.SUCCEEDED) for _ in range(9)]
    store.wait(1)
    blocked += [store.in_state(S.DEAD_LETTERED) for _ in range(6)]
    store.wait(2 * DAY)
    purge(store)
    assert stored(store) == set(blocked)
    assert not stored(store) & set(free)


def test_more_jobs_take_no_more_statements_per_batch(store: Store) -> None:
    def statements(count: int) -> int:
        store.enqueue_all([store.new_job(queue="q") for _ in range(count)])
        claimed = store.claim("q", count)
        store.report(*(Report(one.hold, SUCCESS) for one in claimed))
        store.wait(DAY)
        purger = Purger(store.database)
        with counted_statements(store.database) as sent:
            while purger.run_once():
                pass
        return len(sent)

    few, one_batch, more = statements(3), statements(400), statements(1_200)
    assert stored(store) == set()
    assert one_batch == few
    assert more <= 4 * few


def test_members_of_a_workflow_go_together_from_the_latest_end(store: Store) -> None:
    members = workflow(store, S.SUCCEEDED, S.SUCCEEDED, S.SCHEDULED)
    store.wait(10 * DAY)
    assert purge(store) == 3
    store.end(members[2])
    store.wait(DAY - 1)
    assert purge(store) == 3
    assert rows(store, schema.workflows) == 1
    store.wait(1)
    assert purge(store) == 0
    assert rows(store, schema.workflows) == 0


def test_the_longest_window_among_its_members_holds_for_a_workflow(store: Store) -> None:
    workflow(store, S.DEAD_LETTERED, S.SUCCEEDED)
    store.wait(14 * DAY - 1)
    assert purge(store) == 2
    store.wait(1)
    assert purge(store) == 0


def test_a_workflow_with_a_dependent_outside_it_stays_whole(store: Store) -> None:
    members = workflow(store, S.SUCCEEDED, S.SUCCEEDED)
    outside = store.enqueue(members[0])
    store.wait(2 * DAY)
    assert purge(store) == 3
    store.end(outside)
    store.wait(DAY)
    assert purge(store) == 0


def test_the_batch_size_does_not_divide_a_workflow(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "BATCH", 3)
    kept = workflow(store, *[S.SUCCEEDED] * 10, S.SCHEDULED)
    workflow(store, *[S.SUCCEEDED] * 10)
    store.wait(2 * DAY)
    purge(store)
    assert stored(store) == set(kept)


def watch(store: Store, passed: int, **given: Any) -> None:
    values = {
        "name": f"observer-{passed}", "states": "[]", "registered_at": store.now,
        "last_seen_at": store.now, "token": str(passed), "passed_position": passed,
    }  # fmt: skip
    store.database.write(lambda connection: connection.execute(insert(observers), values | given))


def last_position(store: Store, job_id: UUID) -> int:
    position: int = store.log(job_id)[-1].position
    return position


def test_a_row_that_an_active_observer_has_not_passed_keeps_its_job(store: Store) -> None:
    first, second = store.in_state(S.SUCCEEDED), store.in_state(S.SUCCEEDED)
    store.wait(DAY)
    watch(store, last_position(store, first))
    watch(store, 10_000)
    assert purge(store) == 1
    assert stored(store) == {second}


@pytest.mark.parametrize("gone", ["retired", "forgotten"])
def test_an_observer_that_is_gone_keeps_nothing(store: Store, gone: str) -> None:
    store.in_state(S.SUCCEEDED)
    store.wait(DAY)
    retired = {"retired_at": store.now, "retired_by": "ann"}
    forgotten = {"last_seen_at": store.now - timedelta(days=8)}
    watch(store, 0, **(retired if gone == "retired" else forgotten))
    assert purge(store) == 0


def test_a_reader_whose_place_was_purged_is_told(store: Store) -> None:
    kept = store.enqueue()
    for _ in range(3):
        store.in_state(S.SUCCEEDED)
    end = last_position(store, kept) + 9
    store.wait(DAY)
    assert purge(store) == 1
    later = store.enqueue()

    class Following:
        database = store.database

    tail = LogTail(Following(), after=str(last_position(store, kept)))
    assert [row.job_id for row in tail.read()] == [later]
    # On PostgreSQL a gap is known to stay empty only at a later look.
    assert not list(tail.read())
    assert tail.gone_before == end + 1
    tail.close()


def test_audit_rows_stay_ninety_days_and_nodes_a_day(store: Store) -> None:
    keep_time(store)
    operator = Operator(store.database)
    operator.pause_queue("a", actor="ann")
    store.wait(DAY)
    operator.pause_queue("b", actor="ann")
    record = NodeRecord(
        worker_id="gone", host="h", pid=1, version="0", started_at=store.now,
        heartbeat_seconds=20, slots=1, queues=("a",), wire_names=(),
    )  # fmt: skip
    store.database.write(register_node, record)
    store.wait(89 * DAY + 1)
    store.database.write(register_node, record._replace(worker_id="new", started_at=store.now))
    purge(store)
    assert [row.subject for row in store.audit_rows()] == ["b"]
    assert [node.worker_id for node in Monitor(store.database).nodes()] == ["new"]


def test_an_end_that_lies_ahead_of_now_is_no_fault(store: Store) -> None:
    job_id = store.in_state(S.SUCCEEDED)
    ahead = update(schema.jobs).where(schema.jobs.c.id == job_id)
    store.database.write(
        lambda connection: connection.execute(
            ahead.values(terminal_at=store.now + timedelta(days=1))
        )
    )
    assert purge(store) == 1
