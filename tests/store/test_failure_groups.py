"""Failed jobs are sorted into groups by a sweep, counted up to a bound, and forgotten in time."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.maintenance.failure_grouper import BATCH, FailureGrouper
from latchwork.store import failure_grouping, failure_queries, schema, service_tables
from latchwork.store.engines import writing
from latchwork.views import BoundedCount, JobFilter
from tests.store.builders import Store, counted_statements
from tests.store.failures import CODE, Failures
from tests.store.test_query_plans import faults, sent_by

S = JobState


@pytest.fixture
def failures(store: Store) -> Failures:
    return Failures(store)


def test_failures_of_one_kind_are_one_group(failures: Failures) -> None:
    first = failures.fail("order 1 is gone")
    failures.store.wait(60)
    second = failures.fail("order 2 is gone")
    failures.sort()
    (group,) = failures.monitor.failures().groups
    assert (group.wire_name, group.cause_code, group.cause_type) == ("pack", CODE, "KeyError")
    assert group.message == "order <n> is gone"
    assert group.count == BoundedCount(2)
    assert group.sample is not None
    assert group.sample.id == second
    assert group.last_seen_at - group.first_seen_at == timedelta(seconds=60)
    assert group.key == failures.group_of(first) == failures.group_of(second)


def test_wire_name_type_and_message_tell_groups_apart(failures: Failures) -> None:
    failures.fail()
    failures.fail(wire_name="send")
    failures.fail(kind="OSError")
    failures.fail("disk full")
    failures.fail(state=S.QUARANTINED, kind=None, text="no handler")
    failures.sort()
    assert len(failures.monitor.failures().groups) == 5


def test_only_dead_lettered_and_quarantined_jobs_are_sorted(failures: Failures) -> None:
    for state in S:
        failures.store.in_state(state)
    failures.sort()
    with failures.database.engine.connect() as connection:
        columns = select(schema.jobs.c.state).where(schema.jobs.c.cause_group.is_not(None))
        assert set(connection.scalars(columns)) == {S.DEAD_LETTERED, S.QUARANTINED}


def test_what_is_not_sorted_yet_is_told(failures: Failures) -> None:
    failures.fail()
    page = failures.monitor.failures()
    assert (page.groups, page.ungrouped) == ((), BoundedCount(1))
    failures.sort()
    assert failures.monitor.failures().ungrouped == BoundedCount(0)


def test_a_requeued_job_leaves_its_group_and_comes_back_under_its_new_cause(
    failures: Failures,
) -> None:
    job_id = failures.fail()
    failures.sort()
    failures.store.requeue(job_id)
    assert failures.store.row(job_id).cause_group is None
    assert failures.monitor.failures().groups == ()
    failures.store.end(job_id, S.QUARANTINED)
    failures.sort()
    (group,) = failures.monitor.failures().groups
    assert group.cause_code == "unknown"


def test_without_failure_detail_groups_are_by_type_only(failures: Failures) -> None:
    failures.fail(None)
    failures.fail(None)
    failures.sort()
    (group,) = failures.monitor.failures().groups
    assert (group.message, group.count) == (None, BoundedCount(2))


def test_the_trend_counts_failures_by_the_hour(failures: Failures) -> None:
    failures.fail()
    failures.store.wait(3_600)
    failures.fail()
    failures.fail()
    failures.sort()
    failures.store.wait(3_600)
    (group,) = failures.monitor.failures().groups
    assert group.hours[-3:] == (1, 2, 0)
    assert len(group.hours) == 24
    failures.store.wait(24 * 3_600)
    (group,) = failures.monitor.failures().groups
    assert sum(group.hours) == 0


def test_a_count_stops_at_its_bound(failures: Failures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_queries, "COUNT_BOUND", 2)
    monkeypatch.setattr("latchwork.store.queue_queries.COUNT_BOUND", 2)
    failures.fail_many(4)
    failures.sort()
    (group,) = failures.monitor.failures().groups
    assert str(group.count) == "2+"


def test_groups_are_paged_by_when_they_failed_last(failures: Failures) -> None:
    for letter in "abcde":
        failures.fail(f"cause {letter}")
        failures.store.wait(1)
    failures.sort()
    seen: list[str | None] = []
    page = None
    while True:
        found = failures.monitor.failures(page, limit=2)
        seen += [group.message for group in found.groups]
        page = found.next
        if page is None or len(seen) > 5:
            break
    assert seen == [f"cause {letter}" for letter in "edcba"]


@pytest.mark.parametrize("page", ["", "x", "1", "-a", "99999999999999999999-a", "\u0661-a"])
def test_a_malformed_cursor_is_refused(failures: Failures, page: str) -> None:
    with pytest.raises(InvalidValue):
        failures.monitor.failures(page)


def test_the_jobs_of_a_group_are_listed_by_its_filter(failures: Failures) -> None:
    wanted = failures.fail_many(3)
    other = failures.fail("disk full")
    failures.sort()
    of_group = JobFilter(cause_group=failures.group_of(wanted[0]))
    assert [job.id for job in failures.monitor.jobs(of_group).jobs] == wanted[::-1]
    of_other = JobFilter(cause_group=failures.group_of(other), states=(S.QUARANTINED,))
    assert failures.monitor.jobs(of_other).jobs == ()
    page = failures.monitor.jobs(of_group, limit=2)
    assert [job.id for job in failures.monitor.jobs(of_group, page.next).jobs] == wanted[:1]


def test_a_group_without_jobs_is_forgotten_after_two_days_and_not_before(
    failures: Failures,
) -> None:
    job_id = failures.fail()
    failures.sort()
    key = failures.group_of(job_id)
    failures.store.requeue(job_id)
    failures.store.wait(47 * 3_600)
    failures.sort()
    assert failures.monitor.failure_group(key) is not None
    failures.store.wait(2 * 3_600)
    failures.sort()
    assert failures.monitor.failure_group(key) is None


def test_a_group_with_jobs_is_kept_however_old(failures: Failures) -> None:
    key = None
    job_id = failures.fail()
    failures.sort()
    key = failures.group_of(job_id)
    failures.store.wait(10 * 24 * 3_600)
    failures.sort()
    group = failures.monitor.failure_group(key)
    assert group is not None
    assert group.count == BoundedCount(1)


def test_two_sweeps_at_once_sort_each_job_once(postgres_store: Store) -> None:
    failures = Failures(postgres_store)
    failures.fail_many(3)
    with writing(failures.database.engine) as connection:
        assert failure_grouping.group_failures(connection, limit=10) == 3
        assert FailureGrouper(failures.database).run_once() is False
    failures.sort()
    (group,) = failures.monitor.failures().groups
    assert sum(group.hours) == group.count.value == 3


def test_a_row_that_somebody_holds_is_sorted_later(postgres_store: Store) -> None:
    failures = Failures(postgres_store)
    held, free = failures.fail_many(2)
    mine = schema.jobs.c.id == held
    with writing(failures.database.engine) as connection:
        connection.execute(update(schema.jobs).where(mine).values(payload="1"))
        failures.sort()
    assert failures.store.row(held).cause_group is None
    failures.sort()
    assert failures.group_of(held) == failures.group_of(free)


def test_a_sweep_takes_a_bounded_number_of_statements(failures: Failures) -> None:
    failures.fail_many(30)
    with counted_statements(failures.database) as statements:
        failures.sort()
    assert BATCH >= 30
    assert len(statements) <= 14


def test_reading_failures_walks_no_table_of_jobs(failures: Failures) -> None:
    failures.fail_many(5)
    failures.sort()
    failures.fail("not sorted")
    key = failures.monitor.failures().groups[0].key
    reads = {
        "page": lambda: failures.monitor.failures(limit=2),
        "next page": lambda: failures.monitor.failures("1799999999999999-f"),
        "group": lambda: failures.monitor.failure_group(key),
        "jobs": lambda: failures.monitor.jobs(JobFilter(cause_group=key)),
        "jobs before": lambda: failures.monitor.jobs(JobFilter(cause_group=key), before=3),
        "jobs too": lambda: failures.monitor.jobs(JobFilter(cause_group=key, queue="a")),
        "sweep": lambda: FailureGrouper(failures.database).run_once(),
    }
    for name, read in reads.items():
        sent = sent_by(failures.database, read)
        assert sent, name
        with failures.database.engine.connect() as connection:
            if failures.database.is_sqlite is False:
                connection.exec_driver_sql("SET enable_seqscan = off")
            for statement, values in sent:
                assert not faults(connection, statement, values), (name, statement)


def test_one_page_takes_the_same_statements_for_any_number_of_groups(failures: Failures) -> None:
    failures.fail("cause a")
    failures.sort()
    few = len(sent_by(failures.database, failures.monitor.failures))
    for letter in "bcdefgh":
        failures.fail(f"cause {letter}")
    failures.sort()
    assert len(sent_by(failures.database, failures.monitor.failures)) == few


def test_hours_beyond_the_trend_are_dropped(failures: Failures) -> None:
    failures.fail()
    failures.sort()
    failures.store.wait(72 * 3_600)
    failures.sort()
    with failures.database.engine.connect() as connection:
        assert connection.execute(select(service_tables.failure_hours)).all() == []
