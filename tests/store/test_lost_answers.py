"""An answer lost after the commit: the call is repeated, and its own row is success."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from latchwork.action_results import CancelOutcome, RequeueOutcome
from latchwork.client import Client
from latchwork.decisions.states import JobState
from latchwork.errors import DuplicateJob, InvalidWorkflow, OutcomeUnknown, StoreUnavailable
from latchwork.operations import Operator
from latchwork.store import lost_answers, schema
from latchwork.workflows import Workflow
from tests.store.builders import ACTOR, Store
from tests.store.test_transactional_enqueue import CALL


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_answers, "PAUSES_SECONDS", (0.0, 0.0))


@pytest.fixture
def lose(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lose the answers of the next writes, after they were committed or before."""
    real = store.database.write

    def lose(times: int, *, committed: bool = True) -> None:
        left = [times]

        def write(function: Any, *args: Any, **given: Any) -> Any:
            if not left[0]:
                return real(function, *args, **given)
            left[0] -= 1
            if committed:
                real(function, *args, **given)
            raise StoreUnavailable("the connection broke")

        monkeypatch.setattr(store.database, "write", write)

    return lose


def jobs(store: Store) -> int:
    return len(store.dump()[schema.jobs.name])


@pytest.mark.parametrize("committed", [True, False])
def test_every_enqueue_whose_answer_was_lost_stands_once(
    store: Store, lose: Callable[..., None], committed: bool
) -> None:
    client = Client(store.database)
    lose(1, committed=committed)
    parent = client.enqueue(CALL)
    assert store.state(parent) is JobState.SCHEDULED
    lose(1, committed=committed)
    given = uuid4()
    assert client.enqueue(CALL, job_id=given) == given
    lose(1, committed=committed)
    assert len(client.enqueue_many([CALL, CALL])) == 2
    lose(1, committed=committed)
    child = client.enqueue_dependency(CALL, parent=parent)
    assert store.state(child) is JobState.AWAITING_PARENT
    lose(1, committed=committed)
    started = client.start_workflow(Workflow("w").add("a", CALL).add("b", CALL, after=["a"]))
    lose(1, committed=committed)
    client.append_step(started.id, "c", CALL, after=["b"])
    assert jobs(store) == 8
    workflows = select(schema.workflows.c.id)
    assert store.database.read(lambda c: c.scalars(workflows).all()) == [started.id]


def test_a_job_of_somebody_else_is_still_a_duplicate(
    store: Store, lose: Callable[..., None]
) -> None:
    client = Client(store.database)
    taken = client.enqueue(CALL)
    before = store.dump()
    lose(1, committed=False)
    with pytest.raises(DuplicateJob):
        client.enqueue(CALL, job_id=taken)
    started = client.start_workflow(Workflow("w").add("a", CALL))
    after = store.dump()
    lose(1, committed=False)
    with pytest.raises(InvalidWorkflow):
        client.append_step(started.id, "a", CALL)
    assert store.dump() == after != before


def test_a_database_that_stays_away_leaves_the_outcome_unknown_and_names_the_ids(
    store: Store, lose: Callable[..., None]
) -> None:
    client, operator = Client(store.database), Operator(store.database)
    given = uuid4()
    store.enqueue()
    lose(99, committed=False)
    with pytest.raises(OutcomeUnknown) as unknown:
        client.enqueue(CALL, job_id=given)
    assert unknown.value.ids == (given,)
    with pytest.raises(OutcomeUnknown) as unknown:
        operator.cancel(given, actor=ACTOR)
    assert unknown.value.ids == (given,)
    assert jobs(store) == 1


def test_an_operators_action_whose_answer_was_lost_is_answered_as_carried_out(
    store: Store, lose: Callable[..., None]
) -> None:
    operator = Operator(store.database)
    scheduled, leased, dead = map(
        store.in_state, (JobState.SCHEDULED, JobState.LEASED, JobState.DEAD_LETTERED)
    )
    lose(1)
    assert operator.cancel(scheduled, actor=ACTOR).outcome is CancelOutcome.CANCELLED
    lose(1)
    assert operator.cancel(leased, actor=ACTOR).outcome is CancelOutcome.REQUESTED
    lose(1)
    assert operator.requeue(dead, actor=ACTOR).outcome is RequeueOutcome.REQUEUED
    assert len(store.audit_rows()) == 3
    lose(0)
    assert operator.cancel(scheduled, actor=ACTOR).outcome is CancelOutcome.REFUSED
    assert operator.requeue(dead, actor=ACTOR).outcome is RequeueOutcome.REFUSED
    assert len(store.audit_rows()) == 3
