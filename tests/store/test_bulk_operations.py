"""Operations on many jobs: every member once, whatever crashes, and each answer told."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from latchwork.bulk_views import BulkAction, BulkOperation, BulkOutcome, BulkState
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.errors import InvalidValue, StoreUnavailable
from latchwork.maintenance.bulk_runner import BulkRunner
from latchwork.store import bulk_work, schema, service_tables
from latchwork.store.engines import writing
from latchwork.views import BoundedCount, JobFilter
from tests.store.builders import Store, counted_statements
from tests.store.failures import Failures
from tests.store.test_query_plans import faults, sent_by

S = JobState
FAILED = JobFilter(states=(S.DEAD_LETTERED,))


@pytest.fixture
def failures(store: Store) -> Failures:
    return Failures(store)


def found(failures: Failures, operation: BulkOperation) -> BulkOperation:
    """The operation as it stands."""
    view = failures.monitor.bulk_operation(operation.id)
    assert view is not None
    return view


def outcomes(failures: Failures, operation: BulkOperation) -> dict[Any, str | None]:
    """What became of each member."""
    members = failures.monitor.bulk_members(operation.id, limit=200)
    return {member.job_id: member.outcome for member in members}


def test_every_matching_job_is_requeued_with_its_own_audit_row(failures: Failures) -> None:
    wanted = failures.fail_many(5)
    other = failures.fail(wire_name="send")
    operation = failures.operator.requeue_matching(JobFilter(wire_name="pack"), actor="ann")
    assert operation.state is BulkState.LISTING
    failures.work_off()
    assert failures.store.states(*wanted, other) == [S.SCHEDULED] * 5 + [S.DEAD_LETTERED]
    done = found(failures, operation)
    assert (done.state, done.total, done.done, done.skipped) == (BulkState.FINISHED, 5, 5, 0)
    assert done.outcomes == {"requeued": 5}
    rows = [(row.action, row.subject, row.actor) for row in failures.store.audit_rows()]
    assert rows[0] == ("bulk_requeue", str(operation.id), "ann")
    assert set(rows[1:]) == {("requeue", str(job), "ann") for job in wanted}


def test_live_jobs_are_cancelled_or_asked_to_stop(failures: Failures) -> None:
    store = failures.store
    jobs = {state: store.in_state(state) for state in S}
    operation = failures.operator.cancel_matching(JobFilter(wire_name="pack"), actor="ann")
    failures.work_off()
    told = outcomes(failures, operation)
    assert told[jobs[S.SCHEDULED]] == told[jobs[S.AWAITING_PARENT]] == "cancelled"
    assert told[jobs[S.LEASED]] == "requested"
    assert store.row(jobs[S.LEASED]).cancel_pending
    assert not {jobs[state] for state in S if state.terminal} & told.keys()


def test_a_family_is_cancelled_each_once_whichever_way_it_is_met(failures: Failures) -> None:
    store = failures.store
    parent = store.enqueue(queue="q")
    children = [store.enqueue(parent, queue="q") for _ in range(3)]
    below = store.enqueue(*children, queue="q")
    outside = store.enqueue(below)
    freed = store.enqueue(below, mode=DependencyMode.ON_ANY_TERMINAL)
    operation = failures.operator.cancel_matching(JobFilter(queue="q"), actor="ann")
    failures.work_off()
    assert set(store.states(parent, *children, below, outside)) == {S.CANCELLED}
    assert store.state(freed) is S.SCHEDULED
    assert found(failures, operation).outcomes == {"cancelled": 5}


def test_a_job_that_changed_meanwhile_is_skipped_with_the_reason(failures: Failures) -> None:
    changed, purged, same = failures.fail_many(3)
    operation = failures.operator.requeue_matching(FAILED, actor="ann")
    runner = BulkRunner(failures.database)
    runner.run_once()  # lists them
    failures.store.requeue(changed, actor="bob")
    with writing(failures.database.engine) as connection:
        member = service_tables.bulk_members.c
        connection.execute(
            update(service_tables.bulk_members)
            .where(member.job_id == purged)
            .values(job_id=uuid4())
        )
    failures.work_off(runner)
    assert found(failures, operation).outcomes == {
        "requeued": 1, "refused-scheduled": 1, "not_found": 1,
    }  # fmt: skip
    assert outcomes(failures, operation)[changed] == "refused-scheduled"
    assert failures.store.state(same) is S.SCHEDULED


def test_a_job_that_fails_again_is_not_taken_twice(failures: Failures) -> None:
    (job_id,) = failures.fail_many(1)
    operation = failures.operator.requeue_matching(FAILED, actor="ann")
    failures.work_off()
    failures.store.end(job_id, S.DEAD_LETTERED)
    later = failures.fail()
    failures.work_off()
    assert failures.store.states(job_id, later) == [S.DEAD_LETTERED] * 2
    assert found(failures, operation).done == 1


def test_a_job_enqueued_after_the_word_is_no_member(failures: Failures) -> None:
    failures.fail_many(2)
    operation = failures.operator.requeue_matching(FAILED, actor="ann")
    late = failures.fail()
    failures.work_off()
    assert failures.store.state(late) is S.DEAD_LETTERED
    assert found(failures, operation).total == 2


def test_one_goes_first_and_the_rest_waits_for_the_word(failures: Failures) -> None:
    jobs = failures.fail_many(4)
    failures.sort()
    key = failures.group_of(jobs[0])
    operation = failures.operator.requeue_group(key, actor="ann")
    failures.work_off()
    waiting = found(failures, operation)
    assert (waiting.state, waiting.done, waiting.worker) == (BulkState.WAITING, 1, None)
    assert failures.store.count(S.SCHEDULED) == 1
    word = failures.operator.continue_operation(operation.id, actor="ann")
    assert word is BulkOutcome.CONTINUED
    failures.work_off()
    assert found(failures, operation).state is BulkState.FINISHED
    assert failures.store.states(*jobs) == [S.SCHEDULED] * 4
    again = failures.operator.continue_operation(operation.id, actor="ann")
    assert again is BulkOutcome.REFUSED
    actions = [row.action for row in failures.store.audit_rows()]
    assert actions.count("continue_operation") == 1


def test_a_stopped_operation_acts_on_no_further_member(failures: Failures) -> None:
    failures.fail_many(3)
    operation = failures.operator.requeue_matching(FAILED, actor="ann", canary=True)
    failures.work_off()
    assert failures.operator.stop_operation(operation.id, actor="bob") is BulkOutcome.STOPPED
    assert failures.operator.stop_operation(operation.id, actor="bob") is BulkOutcome.REFUSED
    assert failures.operator.continue_operation(operation.id, actor="bob") is BulkOutcome.REFUSED
    failures.work_off()
    stopped = found(failures, operation)
    assert (stopped.state, stopped.stopped_by, stopped.done) == (BulkState.STOPPED, "bob", 1)
    assert failures.store.count(S.DEAD_LETTERED) == 2


def test_a_word_on_an_unknown_operation_finds_nothing(failures: Failures) -> None:
    assert failures.operator.stop_operation(uuid4(), actor="a") is BulkOutcome.NOT_FOUND
    assert failures.operator.continue_operation(uuid4(), actor="a") is BulkOutcome.NOT_FOUND
    assert failures.monitor.bulk_operation(uuid4()) is None


@pytest.mark.parametrize("crash_at", range(1, 14))
def test_a_crash_before_any_statement_loses_no_member_and_takes_none_twice(
    failures: Failures, monkeypatch: pytest.MonkeyPatch, crash_at: int
) -> None:
    monkeypatch.setattr(bulk_work, "TRIED_PER_STEP", 2)
    jobs = failures.fail_many(3)
    operation = failures.operator.requeue_matching(FAILED, actor="ann")
    failures.work_off(_Dying(failures, crash_at))
    failures.store.wait(60)
    failures.work_off()
    done = found(failures, operation)
    assert (done.state, done.done, done.outcomes) == (BulkState.FINISHED, 3, {"requeued": 3})
    for job in jobs:
        assert failures.store.path(job).count(S.SCHEDULED) == 2
    assert [row.action for row in failures.store.audit_rows()].count("requeue") == 3


class _Dying(BulkRunner):
    """A runner whose process dies in its n-th transaction, after all of it was written."""

    def __init__(self, failures: Failures, crash_at: int) -> None:
        super().__init__(failures.database)
        self._left = crash_at

    def run_once(self) -> bool:
        self._left -= 1
        if self._left >= 0:
            return super().run_once()
        with suppress(KeyboardInterrupt), writing(self._database.engine) as connection:
            bulk_work.work_step(connection, self._worker, now=self._database.now())
            raise KeyboardInterrupt
        return False


def test_nobody_else_goes_on_before_the_lease_of_a_dead_worker_lapses(failures: Failures) -> None:
    failures.fail_many(2)
    operation = failures.operator.requeue_matching(FAILED, actor="ann")
    BulkRunner(failures.database).run_once()
    assert found(failures, operation).worker is not None
    other = BulkRunner(failures.database)
    assert other.run_once() is False
    failures.store.wait(bulk_work.LEASE.total_seconds())
    assert found(failures, operation).worker is None
    failures.work_off(other)
    assert found(failures, operation).state is BulkState.FINISHED


def test_an_answer_lost_after_the_commit_begins_no_second_operation(
    failures: Failures, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures.fail()
    write = failures.database.write
    calls: list[int] = []

    def lossy(function: Callable[..., Any], *args: Any, **given: Any) -> Any:
        answer = write(function, *args, **given)
        calls.append(1)
        if len(calls) == 1:
            raise StoreUnavailable("lost")
        return answer

    monkeypatch.setattr(failures.database, "write", lossy)
    failures.operator.requeue_matching(FAILED, actor="ann")
    assert len(failures.monitor.bulk_operations()) == 1
    assert len(failures.store.audit_rows()) == 1


def test_members_are_listed_in_parts_and_each_once(
    failures: Failures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_work, "LISTED_PER_STEP", 2)
    monkeypatch.setattr("latchwork.store.keyset.WALK_BOUNDS", (3, 3))
    wanted = []
    for _ in range(5):
        wanted.append(failures.fail(queue="wanted"))
        failures.fail()
    operation = failures.operator.requeue_matching(JobFilter(queue="wanted"), actor="ann")
    failures.work_off()
    assert list(outcomes(failures, operation)) == wanted[::-1]


def test_an_operation_that_nothing_matches_is_finished_at_once(failures: Failures) -> None:
    operation = failures.operator.cancel_matching(JobFilter(queue="nobody"), actor="ann")
    failures.work_off()
    assert found(failures, operation).state is BulkState.FINISHED
    assert found(failures, operation).total == 0


def test_a_filter_without_a_legal_state_is_refused(failures: Failures) -> None:
    with pytest.raises(InvalidValue, match="states"):
        failures.operator.requeue_matching(JobFilter(states=(S.SUCCEEDED,)), actor="ann")
    with pytest.raises(InvalidValue):
        failures.operator.cancel_matching(JobFilter(queue="a\n"), actor="ann")
    with pytest.raises(InvalidValue):
        failures.operator.cancel_matching(JobFilter(), actor="")
    assert failures.monitor.bulk_operations() == ()


def test_a_filter_is_stored_whole(failures: Failures) -> None:
    whole = JobFilter((S.DEAD_LETTERED,), "q", "w", ("k", "v"), "c", "t", "g")
    operation = failures.operator.requeue_matching(whole, actor="ann")
    assert found(failures, operation).job_filter == whole


def test_a_preview_tells_how_many_and_what_follows(failures: Failures) -> None:
    store = failures.store
    dead = failures.fail(queue="q")
    lost = store.enqueue(dead)
    store.enqueue(lost)
    live = store.enqueue(queue="q")
    store.enqueue(store.enqueue(live))
    requeue = failures.operator.preview_requeue_matching(JobFilter(queue="q"))
    assert (requeue.action, requeue.count) == (BulkAction.REQUEUE, BoundedCount(1))
    assert requeue.stays_cancelled == BoundedCount(2)
    cancel = failures.operator.preview_cancel_matching(JobFilter(queue="q"))
    assert (cancel.count, cancel.cascade) == (BoundedCount(1), BoundedCount(2))
    nothing = failures.operator.preview_requeue_matching(JobFilter(states=(S.LEASED,)))
    assert (nothing.job_filter, nothing.count) == (None, BoundedCount(0))


def test_a_preview_stops_counting_at_its_bound(
    failures: Failures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latchwork.store.bulk_queries.BOUND", 2)
    failures.fail_many(3)
    assert str(failures.operator.preview_requeue_matching(FAILED).count) == "2+"


def test_a_row_that_is_held_for_a_moment_is_done_and_for_ever_skipped(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latchwork.store.operator_actions.LOCK_SECONDS", 0.05)
    failures = Failures(postgres_store)
    held, free = failures.fail_many(2)
    operation = failures.operator.requeue_matching(FAILED, actor="ann")
    mine = schema.jobs.c.id == held
    with writing(failures.database.engine) as connection:
        connection.execute(update(schema.jobs).where(mine).values(payload="1"))
        failures.work_off()
    assert outcomes(failures, operation) == {free: "requeued", held: "busy"}
    assert found(failures, operation).skipped == 1


def test_a_held_child_delays_its_own_parent_alone(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latchwork.store.operator_actions.LOCK_SECONDS", 0.05)
    failures = Failures(postgres_store)
    store = failures.store
    parent, alone = store.enqueue(queue="q"), store.enqueue(queue="q")
    child = store.enqueue(parent)
    operation = failures.operator.cancel_matching(JobFilter(queue="q"), actor="ann")
    mine = schema.jobs.c.id == child
    with writing(failures.database.engine) as connection:
        connection.execute(update(schema.jobs).where(mine).values(payload="1"))
        failures.work_off()
    assert outcomes(failures, operation) == {alone: "cancelled", parent: "busy"}


def test_a_step_takes_a_number_of_statements_that_its_members_do_not_raise(
    failures: Failures,
) -> None:
    def work() -> int:
        with counted_statements(failures.database) as statements:
            failures.work_off()
        return len([one for one in statements if "latchwork_audit" not in one])

    failures.fail_many(2)
    failures.operator.requeue_matching(FAILED, actor="ann")
    few = work()
    failures.fail_many(40)
    failures.operator.requeue_matching(FAILED, actor="ann")
    # One wake-up hint for each queue, and every job here has its own.
    hints = 0 if failures.database.is_sqlite else 38
    assert work() <= few + hints


def test_reading_operations_walks_no_table_of_jobs(failures: Failures) -> None:
    jobs = failures.fail_many(3)
    failures.store.enqueue(jobs[0])
    operation = failures.operator.requeue_matching(FAILED, actor="ann", canary=True)
    failures.work_off()
    operator, monitor = failures.operator, failures.monitor
    reads: list[Callable[[], object]] = [
        monitor.bulk_operations,
        lambda: monitor.bulk_operation(operation.id),
        lambda: monitor.bulk_members(operation.id),
        lambda: operator.preview_requeue_matching(FAILED),
        lambda: operator.preview_cancel_matching(JobFilter(queue="q")),
        lambda: operator.preview_requeue_matching(JobFilter(cause_group="g")),
    ]
    for read in reads:
        sent = sent_by(failures.database, read)
        with failures.database.engine.connect() as connection:
            if not failures.database.is_sqlite:
                connection.exec_driver_sql("SET enable_seqscan = off")
            for statement, values in sent:
                assert not faults(connection, statement, values), statement


def test_an_operation_that_ended_long_ago_is_forgotten_with_its_members(
    failures: Failures,
) -> None:
    failures.fail_many(2)
    failures.operator.requeue_matching(FAILED, actor="ann")
    failures.work_off()
    failures.store.wait(13 * 24 * 3_600)
    failures.work_off()
    assert len(failures.monitor.bulk_operations()) == 1
    failures.store.wait(2 * 24 * 3_600)
    failures.work_off()
    assert failures.monitor.bulk_operations() == ()
    members = select(func.count()).select_from(service_tables.bulk_members)
    with failures.database.engine.connect() as connection:
        assert connection.scalar(members) == 0


def test_one_worker_at_a_time_is_at_an_operation(postgres_store: Store) -> None:
    failures = Failures(postgres_store)
    failures.fail_many(2)
    operation = failures.operator.requeue_matching(FAILED, actor="ann")
    now = failures.store.now
    with writing(failures.database.engine) as connection:
        assert bulk_work.work_step(connection, "one", now=now) is not None
        with writing(failures.database.engine) as other:
            assert bulk_work.work_step(other, "two", now=now) is None
    failures.store.wait(60)
    failures.work_off()
    assert found(failures, operation).done == 2
