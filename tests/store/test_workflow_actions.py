"""Cancelling and restarting whole workflows, audited and previewed (contract sections 6 and 8)."""

import json
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from latchwork.decisions.states import JobState
from latchwork.decisions.workflows import WorkflowStatus
from latchwork.store import schema, workflow_actions
from latchwork.store.outcomes import OPERATOR_CANCEL
from latchwork.workflow_views import WorkflowOutcome
from latchwork.workflows import StartedWorkflow, Workflow
from tests.store.builders import CANCELLED, Store, counted_statements
from tests.store.workflow_scene import ACTOR, Flow, call, steps

S = JobState


@pytest.fixture
def flow(store: Store) -> Flow:
    return Flow(store)


def status(flow: Flow, workflow_id: UUID) -> WorkflowStatus:
    detail = flow.monitor.workflow(workflow_id)
    assert detail
    return detail.workflow.status


def busy_order(flow: Flow) -> StartedWorkflow:
    """One step has ended, one runs, two wait."""
    started = flow.start(pack="", check="pack", label="check", report="*label")
    flow.end(started.jobs["pack"])
    flow.claim(started.jobs["check"])
    return started


def test_a_cancel_ends_what_waits_and_asks_what_runs(flow: Flow) -> None:
    started = busy_order(flow)
    preview = flow.operator.preview_cancel_workflow(started.id)
    assert preview
    assert (preview.allowed, preview.members.value, preview.requested.value) == (True, 2, 1)
    result = flow.operator.cancel_workflow(started.id, actor=ACTOR)
    assert (result.outcome, result.cancelled, result.requested) == ("requested", 2, 1)
    jobs = started.jobs
    assert flow.states(jobs) == {
        "pack": S.SUCCEEDED, "check": S.LEASED, "label": S.CANCELLED, "report": S.CANCELLED
    }  # fmt: skip
    assert flow.store.row(jobs["check"]).cancel_requested_by == ACTOR
    assert flow.store.row(jobs["report"]).cause_code == OPERATOR_CANCEL
    assert status(flow, started.id) is WorkflowStatus.RUNNING
    flow.store.finish(flow.store.hold(jobs["check"]), CANCELLED)
    assert status(flow, started.id) is WorkflowStatus.CANCELLED


def test_a_cancel_is_audited_for_every_member_it_touched_and_as_a_whole(flow: Flow) -> None:
    started = busy_order(flow)
    flow.operator.cancel_workflow(started.id, actor=ACTOR)
    told = [(row.action, row.subject, json.loads(row.detail)) for row in flow.store.audit_rows()]
    whole = {"outcome": "requested", "cancelled": 2, "requested": 1}
    assert told[-1] == ("cancel_workflow", str(started.id), whole)
    members = [(action, subject, detail["outcome"]) for action, subject, detail in told[:-1]]
    jobs = {step: str(job_id) for step, job_id in started.jobs.items()}
    assert members == [
        ("cancel", jobs["check"], "requested"),
        ("cancel", jobs["label"], "cancelled"),
        ("cancel", jobs["report"], "cancelled"),
    ]


def test_a_repeated_cancel_keeps_the_first_asker_and_leaves_no_second_row(flow: Flow) -> None:
    started = busy_order(flow)
    flow.operator.cancel_workflow(started.id, actor=ACTOR)
    before = flow.store.dump()
    again = flow.operator.cancel_workflow(started.id, actor="ben")
    assert (again.outcome, again.cancelled, again.requested) == ("requested", 0, 1)
    assert flow.store.dump() == before


def test_a_cancel_takes_dependents_outside_the_workflow_along(flow: Flow) -> None:
    started = flow.start(a="", b="a")
    outside = flow.store.enqueue(started.jobs["b"])
    any_end = flow.store.enqueue(started.jobs["b"], mode="on_any_terminal")
    preview = flow.operator.preview_cancel_workflow(started.id)
    assert preview
    assert preview.cascade.value == 1
    result = flow.operator.cancel_workflow(started.id, actor=ACTOR)
    assert result.outcome is WorkflowOutcome.CANCELLED
    assert flow.store.states(outside, any_end) == [S.CANCELLED, S.SCHEDULED]


def test_an_ended_and_an_unknown_workflow_are_not_cancelled(flow: Flow) -> None:
    started = flow.start(a="")
    flow.end(started.jobs["a"])
    before = flow.store.dump()
    ended = flow.operator.cancel_workflow(started.id, actor=ACTOR)
    unknown = flow.operator.cancel_workflow(uuid4(), actor=ACTOR)
    assert (ended.outcome, unknown.outcome) == ("refused", "not_found")
    assert flow.store.dump() == before
    refused = flow.operator.preview_cancel_workflow(started.id)
    assert refused
    assert not refused.allowed
    assert flow.operator.preview_cancel_workflow(uuid4()) is None


def test_a_restart_is_a_new_workflow_of_the_same_steps(flow: Flow) -> None:
    workflow = steps(
        Workflow("order", input={"order": "42"}), {"a": "", "b": "a", "c": "*a", "d": "b c"}
    )
    started = flow.client.start_workflow(workflow)
    flow.client.append_step(started.id, "late", call(9, wire_name="nobody-knows"), after=["d"])
    flow.end(started.jobs["a"], S.DEAD_LETTERED)
    preview = flow.operator.preview_restart_workflow(started.id)
    assert preview
    assert preview.members.value == 5
    before = stored_steps(flow, started.id)
    flow.store.wait(60)
    result = flow.operator.restart_workflow(started.id, actor=ACTOR)
    assert result.outcome is WorkflowOutcome.RESTARTED
    assert result.workflow_id
    assert stored_steps(flow, started.id) == before
    copies = stored_steps(flow, result.workflow_id)
    same = ("wire_name", "queue", "payload", "retry_policy", "tags", "mode", "parents")
    assert {step: {key: facts[key] for key in same} for step, facts in copies.items()} == {
        step: {key: facts[key] for key in same} for step, facts in before.items()
    }
    ids = {facts["id"] for facts in (*copies.values(), *before.values())}
    assert len(ids) == 10
    assert {copies[step]["state"] for step in "bcd"} == {S.AWAITING_PARENT}
    assert copies["a"]["state"] is S.SCHEDULED
    assert copies["a"]["due_at"] == flow.store.now


def test_a_restart_is_linked_both_ways_and_keeps_name_and_input(flow: Flow) -> None:
    started = flow.client.start_workflow(steps(Workflow("order", input=[1]), {"a": ""}))
    new_id = flow.operator.restart_workflow(started.id, actor=ACTOR).workflow_id
    assert new_id
    old, new = flow.monitor.workflow(started.id), flow.monitor.workflow(new_id)
    assert old
    assert new
    assert (old.restarted_as, old.workflow.restarted_from) == ((new_id,), None)
    assert (new.restarted_as, new.workflow.restarted_from) == ((), started.id)
    assert (new.workflow.name, new.input) == ("order", "[1]")
    (row,) = flow.store.audit_rows()
    assert json.loads(row.detail) == {
        "outcome": "restarted",
        "new_workflow": str(new_id),
        "jobs": 1,
    }


def test_a_repeated_restart_under_the_same_request_answers_the_same_workflow(flow: Flow) -> None:
    started = flow.start(a="", b="a")
    request = uuid4()

    def restart() -> object:
        return flow.store.database.write(
            workflow_actions.restart_workflow, started.id, actor=ACTOR, now=flow.store.now,
            request_id=request,
        )  # fmt: skip

    first = restart()
    before = flow.store.dump()
    assert restart() == first
    assert flow.store.dump() == before


def test_an_unknown_workflow_is_not_restarted(flow: Flow) -> None:
    result = flow.operator.restart_workflow(uuid4(), actor=ACTOR)
    assert (result.outcome, result.workflow_id) == ("not_found", None)
    assert flow.operator.preview_restart_workflow(uuid4()) is None


@pytest.mark.parametrize("action", ["cancel_workflow", "restart_workflow"])
def test_the_number_of_statements_does_not_depend_on_the_size(flow: Flow, action: str) -> None:
    counts = []
    flow.start(a="")  # its names are stored
    for width in (3, 40):
        started = flow.start(first="", **{f"m{number}": "first" for number in range(width)})
        with counted_statements(flow.store.database) as statements:
            getattr(flow.operator, action)(started.id, actor=ACTOR)
        counts.append(len(statements))
    assert counts[0] == counts[1]


def stored_steps(flow: Flow, workflow_id: UUID) -> dict[str, dict[str, object]]:
    """What is stored of each step, its parents by their names."""
    jobs = schema.jobs
    of_workflow = select(jobs).where(jobs.c.workflow_id == workflow_id)
    rows = flow.store.database.read(lambda c: c.execute(of_workflow).all())
    names = {row.id: row.step for row in rows}
    return {
        row.step: row._asdict()
        | {"parents": {names[parent] for parent in flow.store.edges(row.id)}}
        for row in rows
    }
