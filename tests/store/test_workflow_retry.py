"""Workflow retry, edge 12: in place, same ids, one log and one audit row per member (section 6)."""

import json
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import Event
from latchwork.decisions.workflows import RetryScope, WorkflowStatus
from latchwork.errors import InvalidValue
from latchwork.store import schema, workflow_retry
from latchwork.workflow_views import WorkflowOutcome
from latchwork.workflows import StartedWorkflow
from tests.store.builders import Store, counted_statements
from tests.store.workflow_scene import ACTOR, Flow

S = JobState
ENDS = {
    "terminal_at", "cause_code", "cause_type", "cause_text", "cause_root_id", "cause_parent_id",
    "cause_parent_state", "cause_group", "cancel_requested_at", "cancel_requested_by",
    "cancel_delivered_at", "cancel_pending",
}  # fmt: skip
UNFINISHED, DOWNSTREAM, ALL = RetryScope.UNFINISHED, RetryScope.DOWNSTREAM, RetryScope.ALL


@pytest.fixture
def flow(store: Store) -> Flow:
    return Flow(store)


def failed_order(flow: Flow) -> StartedWorkflow:
    """Packed; the check failed, so the label was cancelled; the report came all the same."""
    started = flow.start(pack="", check="pack", label="check pack", report="*check")
    jobs = started.jobs
    flow.end(jobs["pack"], output='{"boxes":2}')
    flow.end(jobs["check"], S.DEAD_LETTERED)
    flow.end(jobs["report"], output='"told"')
    assert flow.states(jobs) == {
        "pack": S.SUCCEEDED, "check": S.DEAD_LETTERED, "label": S.CANCELLED, "report": S.SUCCEEDED
    }  # fmt: skip
    return started


@pytest.mark.parametrize(
    ("scope", "after"),
    [
        (UNFINISHED, (S.SUCCEEDED, S.SCHEDULED, S.AWAITING_PARENT, S.SUCCEEDED)),
        (DOWNSTREAM, (S.SUCCEEDED, S.SCHEDULED, S.AWAITING_PARENT, S.AWAITING_PARENT)),
        (ALL, (S.SCHEDULED, S.AWAITING_PARENT, S.AWAITING_PARENT, S.AWAITING_PARENT)),
    ],
)
def test_a_retry_moves_the_members_of_its_scope_and_runs_to_the_end(
    flow: Flow, scope: RetryScope, after: tuple[JobState, ...]
) -> None:
    started = failed_order(flow)
    flow.store.wait(10)
    result = flow.operator.retry_workflow(started.id, scope=scope, actor=ACTOR)
    assert result.outcome is WorkflowOutcome.RETRIED
    assert tuple(flow.states(started.jobs).values()) == after
    assert result.moved == sum(state in (S.SCHEDULED, S.AWAITING_PARENT) for state in after)
    for step in ("pack", "check", "label", "report"):
        if not flow.store.state(started.jobs[step]).terminal:
            flow.end(started.jobs[step])
    detail = flow.monitor.workflow(started.id)
    assert detail
    assert detail.workflow.status is WorkflowStatus.SUCCEEDED


def test_a_moved_member_begins_anew_but_for_what_makes_it_the_same_job(flow: Flow) -> None:
    started = failed_order(flow)
    before = {step: flow.store.row(job_id) for step, job_id in started.jobs.items()}
    flow.store.wait(60)
    flow.operator.retry_workflow(started.id, scope=ALL, actor=ACTOR)
    for step, job_id in started.jobs.items():
        row = flow.store.row(job_id)
        assert row.attempt == 0
        assert {name: value for name, value in row._mapping.items() if name in ENDS and value} == {}
        kept = (
            "id",
            "sequence",
            "claim_number",
            "retry_policy",
            "tags",
            "payload",
            "queue",
            "mode",
        )
        assert all(getattr(row, name) == getattr(before[step], name) for name in kept)
    assert flow.store.row(started.jobs["pack"]).due_at == flow.store.now
    assert flow.store.outputs() == {}


def test_outputs_of_steps_that_are_not_moved_stay(flow: Flow) -> None:
    started = failed_order(flow)
    flow.operator.retry_workflow(started.id, actor=ACTOR)
    assert set(flow.store.outputs()) == {started.jobs["pack"], started.jobs["report"]}


def test_only_edges_between_moved_members_open_again(flow: Flow) -> None:
    started = failed_order(flow)
    flow.operator.retry_workflow(started.id, scope=DOWNSTREAM, actor=ACTOR)
    jobs = started.jobs
    assert flow.store.edges(jobs["check"]) == {jobs["pack"]: False}
    assert flow.store.edges(jobs["label"]) == {jobs["pack"]: False, jobs["check"]: True}
    assert flow.store.edges(jobs["report"]) == {jobs["check"]: True}


def test_each_moved_member_has_one_log_row_and_one_audit_row_in_enqueue_order(flow: Flow) -> None:
    started = failed_order(flow)
    flow.operator.retry_workflow(started.id, scope=ALL, actor=ACTOR)
    in_order = [started.jobs[step] for step in ("pack", "check", "label", "report")]
    log = schema.transitions
    rows = flow.store.database.read(
        lambda c: c.execute(
            select(log).where(log.c.event == Event.WORKFLOW_RETRY).order_by(log.c.position)
        ).all()
    )
    assert [row.job_id for row in rows] == in_order
    assert {row.attempt for row in rows} == {0}
    audited = [row for row in flow.store.audit_rows() if row.action == "retry"]
    assert [UUID(row.subject) for row in audited] == in_order
    assert {row.actor for row in audited} == {ACTOR}
    assert json.loads(audited[1].detail) == {
        "outcome": "retried", "from": "dead_lettered", "workflow": str(started.id)
    }  # fmt: skip
    (whole,) = [row for row in flow.store.audit_rows() if row.action == "retry_workflow"]
    assert (whole.subject_kind, whole.subject) == ("workflow", str(started.id))
    assert json.loads(whole.detail) == {"outcome": "retried", "scope": "all", "moved": 4}


def test_a_member_that_fails_again_cancels_its_branch_again(flow: Flow) -> None:
    started = failed_order(flow)
    flow.operator.retry_workflow(started.id, actor=ACTOR)
    flow.end(started.jobs["check"], S.QUARANTINED)
    assert flow.store.state(started.jobs["label"]) is S.CANCELLED
    result = flow.operator.retry_workflow(started.id, actor=ACTOR)
    assert result.moved == 2
    flow.end(started.jobs["check"])
    flow.end(started.jobs["label"])
    assert set(flow.states(started.jobs).values()) == {S.SUCCEEDED}


def test_a_retry_brings_back_a_branch_that_a_requeue_left_cancelled(flow: Flow) -> None:
    started = failed_order(flow)
    flow.store.requeue(started.jobs["check"])
    flow.end(started.jobs["check"])
    assert flow.store.state(started.jobs["label"]) is S.CANCELLED
    flow.operator.retry_workflow(started.id, actor=ACTOR)
    assert flow.store.state(started.jobs["label"]) is S.SCHEDULED
    flow.end(started.jobs["label"])


def test_a_step_born_cancelled_is_brought_back(flow: Flow) -> None:
    started = failed_order(flow)
    late = flow.append(started, late="check")["late"]
    assert flow.store.state(late) is S.CANCELLED
    flow.operator.retry_workflow(started.id, actor=ACTOR)
    assert flow.store.edges(late) == {started.jobs["check"]: True}


@pytest.mark.parametrize("state", [S.SCHEDULED, S.LEASED, S.AWAITING_PARENT])
def test_a_retry_is_refused_while_a_member_is_live_and_says_which(
    flow: Flow, state: JobState
) -> None:
    started = flow.start(a="", b="", c="b")
    flow.end(started.jobs["a"], S.DEAD_LETTERED)
    if state is S.SCHEDULED:
        flow.store.cancel(started.jobs["c"])
        flow.store.end(started.jobs["b"], S.DEAD_LETTERED)
        flow.store.requeue(started.jobs["b"])
    expected = {
        S.SCHEDULED: {"b": S.SCHEDULED},
        S.LEASED: {"b": S.LEASED},
        S.AWAITING_PARENT: {"b": S.LEASED, "c": S.AWAITING_PARENT},
    }[state]
    if state is S.LEASED:
        flow.store.cancel(started.jobs["c"])
    before = flow.store.dump()
    result = flow.operator.retry_workflow(started.id, actor=ACTOR)
    assert result.outcome is WorkflowOutcome.REFUSED
    assert {member.step: member.state for member in result.live} == expected
    assert flow.store.dump() == before


def test_nothing_to_retry_and_an_unknown_workflow_leave_no_audit_row(flow: Flow) -> None:
    started = flow.start(a="")
    flow.end(started.jobs["a"])
    before = flow.store.dump()
    for scope in (UNFINISHED, DOWNSTREAM):
        result = flow.operator.retry_workflow(started.id, scope=scope, actor=ACTOR)
        assert result.outcome is WorkflowOutcome.UNCHANGED
    unknown = flow.operator.retry_workflow(uuid4(), actor=ACTOR)
    assert unknown.outcome is WorkflowOutcome.NOT_FOUND
    with pytest.raises(InvalidValue):
        flow.operator.retry_workflow(started.id, scope="some", actor=ACTOR)  # type: ignore[arg-type]
    assert flow.store.dump() == before


def test_dependents_outside_the_workflow_stay_as_they_are_and_are_named(flow: Flow) -> None:
    started = failed_order(flow)
    outside = flow.store.enqueue(started.jobs["check"])
    later = flow.store.enqueue(started.jobs["pack"])
    for scope, named in ((UNFINISHED, {outside}), (DOWNSTREAM, {outside}), (ALL, {outside, later})):
        preview = flow.operator.preview_retry_workflow(started.id, scope=scope)
        assert preview
        assert {job.id for job in preview.outside} == named
    flow.operator.retry_workflow(started.id, scope=ALL, actor=ACTOR)
    assert flow.store.states(outside, later) == [S.CANCELLED, S.SCHEDULED]
    assert flow.store.edges(later) == {started.jobs["pack"]: False}


@pytest.mark.parametrize(("scope", "moved"), [(UNFINISHED, 2), (DOWNSTREAM, 3), (ALL, 4)])
def test_a_preview_says_what_the_retry_then_does(flow: Flow, scope: RetryScope, moved: int) -> None:
    started = failed_order(flow)
    preview = flow.operator.preview_retry_workflow(started.id, scope=scope)
    assert preview
    assert (preview.allowed, preview.members.value, preview.scope) == (True, moved, scope)
    result = flow.operator.retry_workflow(started.id, scope=scope, actor=ACTOR)
    assert result.moved == moved
    refused = flow.operator.preview_retry_workflow(started.id, scope=scope)
    assert refused
    assert not refused.allowed
    assert len(refused.live) == moved
    assert flow.operator.preview_retry_workflow(uuid4()) is None


def test_a_repeat_under_the_same_request_moves_nothing_again(flow: Flow) -> None:
    started = failed_order(flow)
    request = uuid4()

    def retry() -> object:
        return flow.store.database.write(
            workflow_retry.retry_workflow, started.id, scope=ALL, actor=ACTOR,
            now=flow.store.now, request_id=request,
        )  # fmt: skip

    first = retry()
    before = flow.store.dump()
    assert retry() == first
    assert flow.store.dump() == before


def test_two_operators_at_once_retry_once(flow: Flow) -> None:
    started = failed_order(flow)
    with ThreadPoolExecutor(2) as threads:
        results = list(
            threads.map(
                lambda actor: flow.operator.retry_workflow(started.id, actor=actor), ("ann", "ben")
            )
        )
    assert sorted(result.outcome for result in results) == ["refused", "retried"]


def test_the_number_of_statements_does_not_depend_on_the_size(flow: Flow) -> None:
    counts = []
    for width in (3, 40):
        middles = {f"m{number}": "first" for number in range(width)}
        started = flow.start(first="", **middles)
        flow.end(started.jobs["first"], S.DEAD_LETTERED)
        with counted_statements(flow.store.database) as statements:
            result = flow.operator.retry_workflow(started.id, actor=ACTOR)
        assert result.moved == width + 1
        counts.append(len(statements))
        flow.store.cancel(started.jobs["first"])
    assert counts[0] == counts[1]
