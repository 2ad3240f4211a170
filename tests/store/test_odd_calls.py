"""Odd calls: each gets a typed answer, and the store stays as it was."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest

from latchwork.client import Client
from latchwork.decisions.states import JobState
from latchwork.errors import (
    DuplicateJob,
    InvalidValue,
    InvalidWorkflow,
    LatchworkError,
    TooManyParents,
    UnknownParent,
    ValueTooLarge,
)
from latchwork.operations import Operator
from latchwork.workflows import Workflow
from tests.store.builders import ON_ANY_TERMINAL, Store
from tests.store.test_transactional_enqueue import CALL

S = JobState
SURROGATE = chr(0xD800)


def test_an_id_that_exists_is_a_duplicate_and_the_stored_job_stays(store: Store) -> None:
    client = Client(store.database)
    job_id = client.enqueue(CALL, tags=["first"])
    before = store.dump()
    with pytest.raises(DuplicateJob) as refused:
        client.enqueue(CALL, job_id=job_id, tags=["second"])
    assert refused.value.job_id == job_id
    assert client.enqueue(CALL, job_id=job_id, exist_ok=True) == job_id
    assert store.dump() == before


def test_checks_come_in_the_order_bounds_duplicate_parents(store: Store) -> None:
    client = Client(store.database)
    job_id = client.enqueue(CALL)
    before = store.dump()
    with pytest.raises(ValueTooLarge):
        client.enqueue_dependency(CALL, parent=uuid4(), job_id=job_id, queue="q" * 129)
    with pytest.raises(DuplicateJob):
        client.enqueue_dependency(CALL, parent=uuid4(), job_id=job_id)
    again = client.enqueue_dependency(CALL, parent=uuid4(), job_id=job_id, exist_ok=True)
    assert again == job_id
    assert store.dump() == before


def test_an_unknown_parent_and_itself_as_parent_are_refused(store: Store) -> None:
    client = Client(store.database)
    before = store.dump()
    mine = uuid4()
    for parent, job_id in ((uuid4(), None), (mine, mine)):
        with pytest.raises(UnknownParent) as refused:
            client.enqueue_dependency(CALL, parent=parent, job_id=job_id)
        assert refused.value.parent_id == parent
    assert store.dump() == before


def test_the_same_parent_twice_counts_once(store: Store) -> None:
    parent = store.enqueue()
    child = store.enqueue(parent, parent, parent)
    assert store.row(child).parents_remaining == 1
    assert store.edges(child) == {parent: True}
    steps = Workflow("w").add("a", CALL).add("b", CALL, after=["a", "a"])
    assert steps.steps["b"].after == ("a",)


def test_sixteen_distinct_parents_are_fine_and_seventeen_are_too_many(store: Store) -> None:
    workflow = Workflow("w")
    names = [f"step-{number}" for number in range(17)]
    for name in names:
        workflow.add(name, CALL)
    workflow.add("sixteen", CALL, after=[*names[:16], names[0]])
    with pytest.raises(TooManyParents) as refused:
        workflow.add("seventeen", CALL, after=names)
    assert (refused.value.count, refused.value.bound) == (17, 16)
    started = Client(store.database).start_workflow(workflow)
    assert store.row(started.jobs["sixteen"]).parents_remaining == 16
    with pytest.raises(TooManyParents):
        Client(store.database).append_step(started.id, "more", CALL, after=names)


BAD_NAMES: list[Any] = ["", "a\nb", "a\0", "\x7f", SURROGATE, 7, None]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_names_that_no_store_may_hold_are_refused_by_field(store: Store) -> None:
    client, operator = Client(store.database), Operator(store.database)
    job_id = store.enqueue()
    before = store.dump()
    for bad in BAD_NAMES:
        with pytest.raises(InvalidValue) as refused:
            operator.cancel(job_id, actor=bad)
        assert refused.value.field == "actor"
        with pytest.raises(InvalidValue) as refused:
            client.enqueue(CALL, tags=[bad])
        assert refused.value.field == "tag"
        if bad is not None:
            with pytest.raises(InvalidValue) as refused:
                client.enqueue(CALL, queue=bad)
            assert refused.value.field == "queue"
    assert store.dump() == before


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_values_of_the_wrong_kind_get_a_typed_error(store: Store) -> None:
    client, operator = Client(store.database), Operator(store.database)
    wrong: Any = "not what is asked for"
    before = store.dump()
    calls: list[Callable[[], object]] = [
        lambda: client.enqueue(wrong),
        lambda: client.enqueue(CALL, job_id=wrong),
        lambda: client.enqueue(CALL, due_at=wrong),
        lambda: client.enqueue(CALL, due_at=datetime(2026, 1, 1)),  # noqa: DTZ001
        lambda: client.enqueue(CALL, tags=wrong),
        lambda: client.enqueue_dependency(CALL, parent=wrong),
        lambda: client.enqueue_dependency(CALL, parent=uuid4(), mode=wrong),
        lambda: client.append_step(wrong, "a", CALL),
        lambda: operator.cancel(wrong, actor="anna"),
        lambda: operator.requeue(wrong, actor="anna"),
        lambda: operator.preview_cancel(wrong),
        lambda: operator.preview_requeue(wrong),
    ]
    for call in calls:
        with pytest.raises(LatchworkError):
            call()
    assert store.dump() == before


def test_a_due_time_in_any_zone_is_that_moment_also_at_the_calendars_ends(store: Store) -> None:
    client = Client(store.database)
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
    due_at = datetime(2030, 1, 1, 12, tzinfo=east)
    assert store.row(client.enqueue(CALL, due_at=due_at)).due_at == due_at
    last = datetime.max.replace(tzinfo=UTC)
    assert store.row(client.enqueue(CALL, due_at=last)).due_at == last
    for outside in (datetime.min.replace(tzinfo=east), datetime.max.replace(tzinfo=west)):
        with pytest.raises(InvalidValue):
            client.enqueue(CALL, due_at=outside)


def test_a_queue_that_nobody_serves_takes_jobs(store: Store) -> None:
    job_id = Client(store.database).enqueue(CALL, queue="nobody-serves-this")
    assert store.state(job_id) is S.SCHEDULED


def test_a_workflow_that_cannot_be_stored_writes_nothing(store: Store) -> None:
    client = Client(store.database)
    before = store.dump()
    broken = [
        Workflow("empty"),
        Workflow("gap").add("a", CALL, after=["missing"]),
        Workflow("cycle").add("a", CALL, after=["b"]).add("b", CALL, after=["a"]),
        Workflow("self").add("a", CALL, after=["a"]),
    ]
    for workflow in broken:
        with pytest.raises(InvalidWorkflow):
            client.start_workflow(workflow)
    with pytest.raises(InvalidWorkflow):
        Workflow("twice").add("a", CALL).add("a", CALL)
    with pytest.raises(InvalidWorkflow):
        client.append_step(uuid4(), "a", CALL)
    assert store.dump() == before


def test_a_workflow_is_one_graph_and_takes_new_steps(store: Store) -> None:
    client = Client(store.database)
    workflow = (
        Workflow("build").add("report", CALL, after=["pack", "check"])
        .add("cleanup", CALL, after=["report"], mode=ON_ANY_TERMINAL)
        .add("pack", CALL).add("check", CALL, after=["pack"], queue="checks", tags=["slow"])
    )  # fmt: skip
    started = client.start_workflow(workflow)
    rows = {name: store.row(job_id) for name, job_id in started.jobs.items()}
    assert {row.workflow_id for row in rows.values()} == {started.id}
    assert {name: row.step for name, row in rows.items()} == {name: name for name in rows}
    assert rows["pack"].sequence < rows["check"].sequence < rows["report"].sequence
    assert (rows["check"].queue, store.tags(started.jobs["check"])) == ("checks", ("slow",))
    added = client.append_step(started.id, "publish", CALL, after=["report"])
    with pytest.raises(InvalidWorkflow):
        client.append_step(started.id, "publish", CALL)
    with pytest.raises(InvalidWorkflow):
        client.append_step(started.id, "other", CALL, after=["missing"])
    store.now = datetime.now(UTC)
    store.cancel(started.jobs["pack"])
    assert store.states(started.jobs["report"], added, started.jobs["cleanup"]) == [
        S.CANCELLED, S.CANCELLED, S.SCHEDULED,
    ]  # fmt: skip
