"""What happens to a workflow at the same instant from two sides: one comes first, whole."""

from functools import partial

import pytest
from sqlalchemy import Connection

from latchwork.decisions.states import JobState
from latchwork.errors import InvalidWorkflow
from latchwork.store.dialects import limit_lock_seconds
from latchwork.store.engines import writing
from latchwork.store.outcomes import Answer, Report, report_outcomes
from latchwork.store.workflow_rows import lock_workflow
from latchwork.workflow_views import WorkflowOutcome
from tests.store.builders import FAILURE, SUCCESS, WORKER, Store
from tests.store.test_races import at_once
from tests.store.workflow_scene import ACTOR, Flow, call

S = JobState
ROUNDS = 8


@pytest.fixture
def flow(store: Store) -> Flow:
    return Flow(store)


def test_a_retry_and_a_requeue_of_a_member_never_both_move_it(flow: Flow) -> None:
    for _ in range(ROUNDS):
        started = flow.start(a="", b="a")
        flow.end(started.jobs["a"], S.DEAD_LETTERED)
        retried, requeued = at_once(
            partial(flow.operator.retry_workflow, started.id, actor=ACTOR),
            partial(flow.operator.requeue, started.jobs["a"], actor=ACTOR),
        )
        outcomes = (retried.outcome.value, requeued.outcome.value)
        assert outcomes in {("retried", "refused"), ("refused", "requeued")}
        waits = retried.outcome is WorkflowOutcome.RETRIED
        assert flow.store.state(started.jobs["b"]) is (S.AWAITING_PARENT if waits else S.CANCELLED)
        flow.end(started.jobs["a"])


def test_a_retry_and_a_step_appended_at_once_leave_a_whole_workflow(flow: Flow) -> None:
    for _ in range(ROUNDS):
        started = flow.start(a="")
        flow.end(started.jobs["a"], S.DEAD_LETTERED)
        retried, late = at_once(
            partial(flow.operator.retry_workflow, started.id, actor=ACTOR),
            partial(flow.client.append_step, started.id, "late", call(), after=["a"]),
        )
        # Before the retry it is born Cancelled and brought back; after it, it waits.
        assert flow.store.state(late) is S.AWAITING_PARENT
        assert retried.moved in (1, 2)
        flow.end(started.jobs["a"])
        flow.end(late)


def test_of_two_that_append_a_step_of_the_same_name_one_is_told(flow: Flow) -> None:
    started = flow.start(a="")

    def append() -> bool:
        try:
            flow.client.append_step(started.id, "late", call())
        except InvalidWorkflow:
            return False
        return True

    assert sorted(at_once(append, append)) == [False, True]


def test_a_cancel_and_the_success_of_a_member_end_the_workflow_once(flow: Flow) -> None:
    for _ in range(ROUNDS):
        started = flow.start(a="", b="a", c="b")
        hold = flow.claim(started.jobs["a"]).hold
        cancelled, _ = at_once(
            partial(flow.operator.cancel_workflow, started.id, actor=ACTOR),
            partial(flow.store.finish, hold, SUCCESS),
        )
        assert flow.states(started.jobs) == {"a": S.SUCCEEDED, "b": S.CANCELLED, "c": S.CANCELLED}
        assert cancelled.cancelled == 2


def test_a_member_that_moves_twice_at_once_does_not_wait_for_who_holds_its_workflow(
    postgres_store: Store,
) -> None:
    """The lock on a workflow comes before those on its members: nobody takes it after them."""
    store, flow = postgres_store, Flow(postgres_store)
    started = flow.start(a="")
    hold = flow.claim(started.jobs["a"]).hold
    store.cancel(started.jobs["a"])
    report = Report(hold, FAILURE, next_due_at=store.now)

    def retry_and_cancel(connection: Connection) -> list[Answer]:
        limit_lock_seconds(connection, 1)
        return report_outcomes(connection, WORKER, [report], now=store.now)

    with writing(store.database.engine) as connection:
        assert lock_workflow(connection, started.id)
        (answer,) = store.database.write(retry_and_cancel)
    assert answer.state is S.CANCELLED
