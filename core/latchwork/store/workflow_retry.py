"""Workflow retry: ended members get a new life in place, with the same ids (edge 12, section 6)."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, delete, update

from latchwork.decisions.transitions import revive_edge
from latchwork.decisions.workflows import MemberEdge, RetryPlan, RetryScope, plan_retry
from latchwork.store import audit, ending
from latchwork.store.dialects import BIG, BatchWrite, array, in_array, limit_lock_seconds
from latchwork.store.moves import LockedJob, Move, lock_jobs
from latchwork.store.operator_actions import LOCK_SECONDS
from latchwork.store.schema import edges, outputs
from latchwork.store.workflow_actions import audit_members, audit_workflow
from latchwork.store.workflow_rows import lock_workflow, read_member_edges, read_members
from latchwork.workflow_views import RetryWorkflowResult, WorkflowMember, WorkflowOutcome


def retry_workflow(
    connection: Connection,
    workflow_id: UUID,
    *,
    scope: RetryScope,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> RetryWorkflowResult:
    """Give the members in ``scope`` a new life; refused while any member is live.

    ``request_id`` makes a repeat after a lost answer return the first answer.
    """
    limit_lock_seconds(connection, LOCK_SECONDS)
    if not lock_workflow(connection, workflow_id):
        return RetryWorkflowResult(WorkflowOutcome.NOT_FOUND)
    if earlier := audit.detail_of_request(connection, request_id):
        return RetryWorkflowResult(WorkflowOutcome.RETRIED, earlier["moved"])
    found = read_members(connection, workflow_id)
    held = {job.sequence: job for job in lock_jobs(connection, [one.sequence for one in found])}
    members = [one._replace(state=held[one.sequence].state) for one in found]
    live = tuple(
        WorkflowMember(one.id, one.step, one.state) for one in members if not one.state.terminal
    )
    if live:
        return RetryWorkflowResult(WorkflowOutcome.REFUSED, live=live)
    # Read while every member is held: no edge between them changes any more.
    between = read_member_edges(connection, workflow_id)
    plan = plan_retry({one.sequence: one.state for one in members}, between, scope)
    if not plan.latches:
        return RetryWorkflowResult(WorkflowOutcome.UNCHANGED)
    _open_edges(connection, plan.reopened)
    _drop_outputs(connection, list(plan.latches))
    ending.write(connection, _moves(plan, held, now), held, now, wait=True)
    outcomes = {
        one: WorkflowOutcome.RETRIED.value for one in members if one.sequence in plan.latches
    }
    audit_members(connection, "retry", workflow_id, outcomes, actor=actor, now=now)
    detail = {
        "outcome": WorkflowOutcome.RETRIED.value,
        "scope": scope.value,
        "moved": len(plan.latches),
    }
    audit_workflow(
        connection, "retry_workflow", workflow_id, detail,
        actor=actor, now=now, request_id=request_id,
    )  # fmt: skip
    return RetryWorkflowResult(WorkflowOutcome.RETRIED, len(plan.latches))


def _moves(plan: RetryPlan, held: dict[int, LockedJob], now: datetime) -> list[Move]:
    return [
        Move.of(
            held[sequence],
            revive_edge(held[sequence].state, waits=latch > 0),
            now,
            due_at=None if latch else now,
            latch=latch,
        )
        for sequence, latch in plan.latches.items()
    ]


@cache
def _open_statement(dialect: str) -> BatchWrite:
    def build(row: Any) -> Any:
        this_edge = (edges.c.parent_sequence == row.parent) & (edges.c.child_sequence == row.child)
        return update(edges).where(this_edge).values(is_open=True)

    return BatchWrite(dialect, {"parent": BIG, "child": BIG}, build)


def _open_edges(connection: Connection, reopened: Sequence[MemberEdge]) -> None:
    if reopened:
        columns = list(zip(*reopened, strict=True))
        _open_statement(connection.dialect.name).execute(connection, columns)


def _drop_outputs(connection: Connection, sequences: Sequence[int]) -> None:
    found = in_array(connection.dialect.name, outputs.c.job_sequence, "sequences", BIG)
    connection.execute(
        delete(outputs).where(found), {"sequences": array(connection, sequences, BIG)}
    )
